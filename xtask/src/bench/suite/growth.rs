//! Cost as work grows: more tools, longer arguments, more scripts at a start, more sessions and
//! subscriptions, and longer audit logs.

mod arguments;
mod records;
mod sessions;
mod starts;
mod subscriptions;
mod tools;

use crate::bench::findings::Findings;
use crate::bench::lab::Lab;

pub(crate) async fn run(lab: &Lab) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    tools::run(lab, &mut findings).await?;
    arguments::run(lab, &mut findings).await?;
    starts::run(lab, &mut findings).await?;
    sessions::run(lab, &mut findings).await?;
    subscriptions::run(lab, &mut findings).await?;
    records::run(lab, &mut findings).await?;
    Ok(findings)
}
