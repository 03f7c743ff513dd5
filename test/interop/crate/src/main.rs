//! The operations of the unmodified crate `lancedb` against a served catalog. `operations` expects a catalog without a
//! runner, so that its jobs wait, `refreshes` one with a runner, and `databases` an empty one whose databases are
//! namespaces.

mod columns;
mod data_loader;
mod databases;
mod functions;
mod indices;
mod jobs;
mod refreshes;
mod support;
mod tables;
mod unsupported;
mod versions;

use std::time::Instant;

use lancedb::Result;
use support::Client;

#[tokio::main]
async fn main() -> Result<()> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    match mode.as_str() {
        "operations" => operations(&Client::connect().await?).await,
        "refreshes" => timed("refreshes", refreshes::run(&Client::connect().await?)).await,
        "databases" => timed("databases", databases::run()).await,
        _ => panic!("the argument must be operations, refreshes or databases, not {mode:?}"),
    }
}

async fn operations(client: &Client) -> Result<()> {
    timed("tables", tables::run(client)).await?;
    timed("indices", indices::run(client)).await?;
    timed("versions", versions::run(client)).await?;
    timed("columns", columns::run(client)).await?;
    timed("jobs", jobs::run(client)).await?;
    timed("functions", functions::run(client)).await?;
    timed("data loader", data_loader::run(client)).await?;
    timed("unsupported operations", unsupported::run(client)).await
}

/// Runs a part on the heap, because its future is large, and prints its duration.
async fn timed(what: &str, part: impl Future<Output = Result<()>>) -> Result<()> {
    let start = Instant::now();
    Box::pin(part).await?;
    println!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}
