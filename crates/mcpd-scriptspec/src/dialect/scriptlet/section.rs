//! Sections of Markdown: headings with the comments, the first paragraph and
//! the code blocks below each.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::json::Span;

/// A piece of text and its place.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A heading and its content.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) heading: Text,
    /// Contents of the comments.
    pub(super) comments: Vec<Span>,
    /// Start of an unclosed comment.
    pub(super) open_comment: Option<Span>,
    pub(super) paragraph: Option<Text>,
    pub(super) blocks: Vec<Block>,
    /// The code below the parent heading, shared by all sections below it.
    pub(super) shared: Vec<Block>,
    level: HeadingLevel,
}

/// A fenced block.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    /// The first word after the fence, in lower case.
    pub(super) name: String,
    pub(super) name_span: Span,
    pub(super) code: String,
    /// Place of its lines.
    pub(super) span: Span,
    /// Starts of the code's pieces, in the code and in the source.
    places: Vec<(usize, usize)>,
}

impl Section {
    /// Returns whether the section has code, or may have some inside an unclosed comment.
    pub(super) fn is_tool(&self) -> bool {
        self.open_comment.is_some() || self.blocks.iter().any(Block::is_code)
    }
}

impl Block {
    fn is_code(&self) -> bool {
        !matches!(self.name.as_str(), "metadata" | "schema")
    }

    /// Creates a block of code generated from the text at `span`.
    pub(super) fn new_at(code: String, span: Span) -> Self {
        Self {
            code,
            places: vec![(0, span.start)],
            span,
            ..Self::default()
        }
    }

    /// Appends the code of another block, which keeps its places.
    pub(super) fn append(&mut self, other: &Self) {
        let length = self.code.len();
        let places = other.places.iter();
        self.places
            .extend(places.map(|(place, source)| (length + place, *source)));
        self.code.push_str(&other.code);
    }

    /// Returns this block with parts of its code, which keep their places.
    pub(super) fn with_parts(&self, parts: &[Span]) -> Self {
        let mut block = Self {
            code: String::new(),
            places: Vec::new(),
            ..self.clone()
        };
        for part in parts {
            let length = block.code.len();
            let inside = |(place, _): &&(usize, usize)| (part.start + 1..part.end).contains(place);
            let pieces = self.places.iter().filter(inside);
            block.places.push((length, self.source_of(part).start));
            block
                .places
                .extend(pieces.map(|(place, source)| (length + place - part.start, *source)));
            block.code.push_str(&self.code[part.clone()]);
        }
        block
    }

    /// Place in the source of a part of the code.
    pub(super) fn source_of(&self, part: &Span) -> Span {
        let before = self
            .places
            .partition_point(|(place, _)| *place <= part.start);
        let (place, source) = before
            .checked_sub(1)
            .map_or((0, self.span.start), |last| self.places[last]);
        let start = source + (part.start - place);
        start..start + part.len()
    }
}

/// The sections that can be tools: those of the second level, or of the first level in a file
/// without any of the second.
pub(super) fn sections(source: &str) -> Vec<Section> {
    let mut reader = SectionReader::default();
    let events = Parser::new_ext(source, Options::ENABLE_YAML_STYLE_METADATA_BLOCKS);
    for (event, span) in events.into_offset_iter() {
        reader.event(event, span, source);
    }
    let all = reader.sections;
    let level = if all.iter().any(|section| section.level == HeadingLevel::H2) {
        HeadingLevel::H2
    } else {
        HeadingLevel::H1
    };
    let mut shared = Vec::new();
    let mut chosen = Vec::new();
    for mut section in all {
        if section.level == level {
            section.shared.clone_from(&shared);
            chosen.push(section);
        } else {
            shared = section.blocks;
            shared.retain(Block::is_code);
        }
    }
    chosen
}

#[derive(Default)]
struct SectionReader {
    sections: Vec<Section>,
    /// Number of open lists and quotations: a block inside one is an illustration.
    nested: usize,
    heading: Option<Text>,
    block: Option<Block>,
}

impl SectionReader {
    fn event(&mut self, event: Event<'_>, span: Span, source: &str) {
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_)) => self.nested += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_)) => self.nested -= 1,
            _ if self.nested > 0 => {}
            Event::Start(Tag::Heading { .. }) => {
                self.heading = Some(Text {
                    text: String::new(),
                    span,
                });
            }
            Event::End(TagEnd::Heading(level)) => {
                let heading = self.heading.take().filter(|_| level <= HeadingLevel::H2);
                self.sections
                    .extend(heading.map(|heading| Section::new(heading, level, source)));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                self.block = Some(Block::new(&info, span, source));
            }
            Event::End(TagEnd::CodeBlock) => {
                if let (Some(block), Some(section)) = (self.block.take(), self.sections.last_mut())
                {
                    section.blocks.push(block);
                }
            }
            Event::Text(text) | Event::Code(text) => self.text(&text, span),
            Event::Start(Tag::Paragraph) => {
                if let Some(section) = self
                    .sections
                    .last_mut()
                    .filter(|section| section.blocks.is_empty())
                {
                    let text = source[span.clone()].trim();
                    let span = span.start..span.start + text.len();
                    section.paragraph.get_or_insert(Text {
                        text: text.to_owned(),
                        span,
                    });
                }
            }
            Event::Start(Tag::HtmlBlock) => {
                if let Some(section) = self.sections.last_mut() {
                    section.comments(source, span);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, span: Span) {
        if let Some(block) = &mut self.block {
            block.places.push((block.code.len(), span.start));
            block.code.push_str(text);
            if block.places.len() == 1 {
                block.span.start = span.start;
            }
            block.span.end = span.end;
        } else if let Some(heading) = &mut self.heading {
            heading.text.push_str(text);
        }
    }
}

impl Section {
    fn new(mut heading: Text, level: HeadingLevel, source: &str) -> Self {
        let line = source[heading.span.clone()].trim_end();
        heading.span.end = heading.span.start + line.len();
        Self {
            heading,
            comments: Vec::new(),
            open_comment: None,
            paragraph: None,
            blocks: Vec::new(),
            shared: Vec::new(),
            level,
        }
    }

    /// Finds the comments in a block of HTML.
    fn comments(&mut self, source: &str, block: Span) {
        let mut start = block.start;
        while let Some(open) = source[start..block.end].find("<!--") {
            let open = start + open;
            let inside = open + "<!--".len();
            let Some(length) = source[inside..block.end].find("-->") else {
                self.open_comment = Some(open..inside);
                return;
            };
            start = inside + length;
            self.comments.push(inside..start);
        }
    }
}

impl Block {
    fn new(info: &str, span: Span, source: &str) -> Self {
        let name = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
        let fence = source[span.clone()].lines().next().unwrap_or_default();
        let place = fence.find(name).filter(|_| !name.is_empty());
        let start = span.start + place.unwrap_or(0);
        let length = if place.is_some() {
            name.len()
        } else {
            fence.len()
        };
        Self {
            name: name.to_ascii_lowercase(),
            name_span: start..start + length,
            // A block without lines is empty.
            span: span.end..span.end,
            ..Self::default()
        }
    }
}
