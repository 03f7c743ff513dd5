//! Refreshes of computed columns by a runner, to their end.

use std::time::Duration;

use arrow_array::types::{Float64Type, Int64Type};
use futures::TryStreamExt;
use lancedb::function::{FunctionErrorsRequest, RefreshColumnResult};
use lancedb::job::JobEventsRequest;
use lancedb::listing::ListingOptions;
use lancedb::query::{ColumnOrdering, QueryBase};
use lancedb::table::computed_columns::ComputedColumnOptions;
use lancedb::{Result, Table};
use serde_json::json;
use tokio::time::timeout;

use crate::functions::{apply, scalar};
use crate::jobs::states;
use crate::support::{Client, assert_refused, films, numbers};

const REFRESH_DEADLINE: Duration = Duration::from_secs(600);

/// The first of a hundred rows fails, which is less than the tolerated share.
const SHARE: &str = "
def share(value: int) -> float:
    return 100 / value
";

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("refreshed", films(0..100)).await?;
    with_sql(client, &table).await?;
    with_function(client, &table).await?;
    client.db.drop_table("refreshed", &client.namespace).await
}

async fn with_sql(client: &Client, table: &Table) -> Result<()> {
    let interval = ComputedColumnOptions { auto_refresh_enabled: true, auto_refresh_interval_seconds: Some(60) };
    let automatic = table.add_columns().computed("twice", "id * 2").computed_options(interval).execute().await;
    assert_refused("an interval without automatic refreshes", automatic, "TILTYARD_AUTO_REFRESH=on");
    table.add_columns().computed("twice", "id * 2").execute().await?;
    let result = refresh(client, table, "twice").await?;
    assert_eq!((result.rows_assigned, result.rows_failed, result.rows_remaining), (100, 0, 0), "the refresh");
    assert!(result.published_version > Some(result.source_version), "its versions: {result:?}");
    let twice: Vec<_> = (0..100).map(|id| Some(id * 2)).collect();
    assert_eq!(numbers::<Int64Type>(&in_order(table), "twice").await?, twice, "the values");

    table.add(films(100..110)).execute().await?;
    assert_eq!(refresh(client, table, "twice").await?.rows_assigned, 10, "a refresh of new rows");
    assert_eq!(refresh(client, table, "twice").await?.rows_assigned, 0, "a refresh without new rows");
    table.delete("id >= 100").await?;
    Ok(())
}

async fn with_function(client: &Client, table: &Table) -> Result<()> {
    let registration = scalar("share", SHARE, "float64");
    let version = client.db.create_function_async(registration, &client.namespace).await?.wait().await?;
    table.add_columns().function_as("share", apply(&version, "id", json!({}))).execute().await?;
    let result = refresh(client, table, "share").await?;
    assert_eq!((result.rows_assigned, result.rows_failed, result.rows_remaining), (99, 1, 0), "the refresh");
    let shares: Vec<_> = (0..100).map(|id| (id > 0).then(|| 100.0 / f64::from(id))).collect();
    assert_eq!(numbers::<Float64Type>(&in_order(table), "share").await?, shares, "the values");

    let errors = table.function_errors(FunctionErrorsRequest::new().column("share")).await?;
    let [error] = &errors.records[..] else { panic!("one failed row: {errors:?}") };
    assert_eq!((error.function.as_str(), error.function_version.as_str()), ("share", "1"), "the failed function");
    assert_eq!(error.error_type, "builtins.ZeroDivisionError", "the type of the error");

    table.update().only_if("id = 0").column("id", "1000").execute().await?;
    let result = refresh(client, table, "share").await?;
    assert_eq!((result.rows_assigned, result.rows_failed), (1, 0), "a refresh of the changed row");
    table.drop_columns(&["share", "twice"]).await?;
    assert!(client.db.drop_function("share", "1", &client.namespace).await?, "drop_function");
    Ok(())
}

/// Refreshes a column, and checks the records of the job.
async fn refresh(client: &Client, table: &Table, column: &str) -> Result<RefreshColumnResult> {
    let job = table.refresh_column_async(column).await?;
    let result = timeout(REFRESH_DEADLINE, job.wait()).await.expect("the end of the refresh")?;
    assert_eq!(job.status().await?, "finished", "the state of the job");
    let id = job.id().expect("the id of a job");
    let jobs: Vec<_> = client.db.list_jobs(ListingOptions::default()).try_collect().await?;
    assert!(jobs.iter().any(|each| each.job_id == id && each.state == "finished"), "the job in list_jobs");
    let opened = client.db.open_job(id).await?;
    let events = states(&opened, JobEventsRequest::default()).await?;
    assert_eq!(events, ["queued", "claim", "done"], "the events of the job");
    Ok(result)
}

fn in_order(table: &Table) -> lancedb::query::Query {
    table.query().order_by(Some(vec![ColumnOrdering::asc_nulls_last("id".into())]))
}
