//! Options of the command line that the configuration file sets too, as groups that a program
//! flattens into its own commands. Each group takes what neither a flag nor a variable sets from
//! the [`Layers`](crate::Layers) below.

mod cluster;
mod logging;
mod scripts;
mod selecting;
mod serve;
mod value;
mod web;

pub use cluster::{Clustering, Worker, Working};
pub use logging::{LogFormat, Logging};
pub use scripts::{
    BESIDE_SCRIPTS, BuiltIn, Configuration, Confinement, Enabling, Locking, RootFlags, Roots,
    RunLimits, Scanning, Serving, ToolNames,
};
pub use selecting::Selecting;
pub(crate) use selecting::SelectionParts;
pub use serve::{Certificates, Serve};
pub(crate) use value::port;
use value::{seconds, whole_number};
pub use web::{Host, WebOrigin};
