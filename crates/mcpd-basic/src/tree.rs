//! Program as a tree. Every name in it is in lower case.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Span;
use crate::functions::Builtin;
use crate::value::Value;

/// Name of a variable or a function, in lower case and without a `$` at its end.
pub(crate) type Name = Arc<str>;

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) body: Block,
    pub(crate) functions: BTreeMap<Name, Function>,
    /// Names declared by PARAM.
    pub(crate) parameters: Vec<Name>,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) parameters: Vec<Name>,
    pub(crate) body: Block,
}

pub(crate) type Block = Vec<Statement>;

#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum StatementKind {
    Assign(Place, Expression),
    Push(Place, Expression),
    /// Printed values, each with the text after it.
    Print(Vec<(Expression, &'static str)>),
    If {
        branches: Vec<(Expression, Block)>,
        otherwise: Block,
    },
    For {
        variable: Name,
        from: Expression,
        to: Expression,
        step: Option<Expression>,
        body: Block,
    },
    ForEach {
        variable: Name,
        list: Expression,
        body: Block,
    },
    While {
        condition: Expression,
        body: Block,
    },
    Exit(Loop),
    Call(Expression),
    Return(Option<Expression>),
    End,
    Error(Expression),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loop {
    For,
    While,
}

/// Target of an assignment: a variable, or an element of it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: Name,
    pub(crate) path: Vec<Expression>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) kind: ExpressionKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ExpressionKind {
    Value(Value),
    Variable(Name),
    List(Vec<Expression>),
    Object(Vec<(Name, Expression)>),
    Negate(Box<Expression>),
    Not(Box<Expression>),
    /// Operators of one precedence, from left to right: flat, so that a long sum is not a deep
    /// tree.
    Chain(Box<Expression>, Vec<(Operator, Expression)>),
    /// Element of a list or an object.
    Element(Box<Expression>, Vec<Expression>),
    Builtin(&'static Builtin, Vec<Expression>),
    Call(Name, Vec<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Join,
    Add,
    Subtract,
    Modulo,
    Multiply,
    Divide,
    Power,
}

impl Operator {
    /// Returns the operator as written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Or => "OR",
            Self::And => "AND",
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Join => "&",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Modulo => "MOD",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Power => "^",
        }
    }
}
