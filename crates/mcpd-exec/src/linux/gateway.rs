//! Gateway of a run whose network is limited to destinations: the socket at which its proxy
//! listens, and what keeps the run from every other way out.
//!
//! | way | the run reaches | another process reaches the proxy |
//! |---|---|---|
//! | [`Way::Namespace`] | the proxy, and itself | never |
//! | [`Way::Port`] | the port of the proxy, on any machine | with the password |

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use super::landlock::{Refusal, Ruleset};
use super::namespaces::{has_own_users, user_map_steps};
use super::raw::{NetworkPlan, Step, receive_descriptor};
use super::{pipe, tree};
use crate::egress::{Gate, Password};
use crate::sandbox::{Level, Sandbox};

/// Port of the proxy in a namespace, where no other program has one. Squid made it customary.
const PROXY_PORT: u16 = 3128;

/// Mechanism that leaves a run no way out but its proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A network namespace of its own.
    Namespace,
    /// Landlock, which limits the ports that can be connected to.
    Port,
}

/// Gateway of one run.
#[derive(Debug)]
pub(crate) struct Gateway {
    gate: Gate,
    door: Door,
}

#[derive(Debug)]
enum Door {
    Namespace {
        flags: i32,
        steps: Vec<Step>,
        ours: OwnedFd,
        theirs: OwnedFd,
    },
    Port {
        listener: TcpListener,
        ruleset: Ruleset,
    },
}

impl Gateway {
    /// Prepares the gateway of a run.
    ///
    /// # Errors
    ///
    /// No descriptor can be had, or the kernel's Landlock has no rules for ports.
    pub(crate) fn prepare(sandbox: &Sandbox, way: Way) -> Result<Self, Refusal> {
        match way {
            Way::Namespace => Ok(Self::in_namespace(sandbox)?),
            Way::Port => Self::at_port(),
        }
    }

    fn in_namespace(sandbox: &Sandbox) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut flags = libc::CLONE_NEWNET;
        let mut steps = Vec::new();
        // At `strict` the run has a user namespace anyway, unless it is left to a backend.
        let has_none = sandbox.level == Level::Guarded || sandbox.backend.is_some();
        if has_none && has_own_users(sandbox.run_as) {
            flags |= libc::CLONE_NEWUSER;
            steps.extend(user_map_steps()?);
        }
        Ok(Self {
            gate: Gate {
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, PROXY_PORT)),
                password: None,
            },
            door: Door::Namespace {
                flags,
                steps,
                ours: ours.into(),
                theirs: pipe::above_reserved(theirs.into())?,
            },
        })
    }

    fn at_port() -> Result<Self, Refusal> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let ruleset = Ruleset::port(address.port())?;
        Ok(Self {
            gate: Gate {
                address,
                password: Some(Password::new([tree::random(), tree::random()])),
            },
            door: Door::Port { listener, ruleset },
        })
    }

    /// Address of the proxy, as the run sees it.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the network namespace to create, if there is one.
    pub(crate) fn network(&self) -> Option<NetworkPlan<'_>> {
        match &self.door {
            Door::Namespace {
                flags,
                steps,
                theirs,
                ..
            } => Some(NetworkPlan {
                flags: *flags,
                steps,
                port: self.gate.address.port(),
                channel: theirs.as_fd(),
            }),
            Door::Port { .. } => None,
        }
    }

    /// Returns the ruleset to enter, if there is one.
    pub(crate) fn ruleset(&self) -> Option<&Ruleset> {
        match &self.door {
            Door::Namespace { .. } => None,
            Door::Port { ruleset, .. } => Some(ruleset),
        }
    }

    /// Returns the socket of the proxy, with its password, once the run has started.
    ///
    /// # Errors
    ///
    /// The descriptor can't be had.
    pub(crate) fn open(self) -> io::Result<(TcpListener, Option<Password>)> {
        let listener = match self.door {
            Door::Namespace { ours, .. } => receive_descriptor(ours.as_fd())?.into(),
            Door::Port { listener, .. } => listener,
        };
        Ok((listener, self.gate.password))
    }
}
