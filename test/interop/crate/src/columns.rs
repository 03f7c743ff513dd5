//! Columns: add, alter, compute by SQL, refresh automatically and drop.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Int32Type;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use futures::TryStreamExt;
use lancedb::database::JobInfo;
use lancedb::listing::ListingOptions;
use lancedb::query::{QueryBase, Select};
use lancedb::table::computed_columns::{ComputedColumnOptions, computed_columns};
use lancedb::table::{ColumnAlteration, FieldMetadataUpdate, NewColumnTransform};
use lancedb::{Result, Table};
use tokio::time::{Instant, sleep};

use crate::support::{Client, assert_refused, columns_of, films, numbers};

/// The maximum time until the catalog opens a job for new rows.
const AUTOMATION_SECONDS: u64 = 60;

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("columns", films(0..3)).await?;
    add_and_alter(&table).await?;
    compute(&table).await?;
    refresh_automatically(client, &table).await?;
    client.db.drop_table("columns", &client.namespace).await
}

async fn add_and_alter(table: &Table) -> Result<()> {
    let expressions = NewColumnTransform::SqlExpressions(vec![("twice".into(), "id * 2".into())]);
    table.add_columns().transform(expressions).execute().await?;
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("+05:30".into()));
    let nulls = Schema::new(vec![
        Field::new("seen", zoned.clone(), true),
        Field::new("price", DataType::Decimal128(10, 2), true),
    ]);
    table.add_columns().transform(NewColumnTransform::AllNulls(Arc::new(nulls))).execute().await?;
    let schema = table.schema().await?;
    assert_eq!(schema.field_with_name("seen")?.data_type(), &zoned, "a time with a zone");
    assert_eq!(schema.field_with_name("price")?.data_type(), &DataType::Decimal128(10, 2), "a decimal");
    assert_eq!(table.count_rows(Some("seen IS NULL AND price IS NULL".into())).await?, 3, "columns without values");

    let renamed = ColumnAlteration::new("twice".into()).rename("double".into()).cast_to(DataType::Int32);
    table.alter_columns(&[renamed]).await?;
    let doubled = table.query().only_if("id = 2").select(Select::columns(&["double"]));
    assert_eq!(numbers::<Int32Type>(&doubled, "double").await?, [Some(4)], "the renamed column with another type");
    table.update_field_metadata(&[FieldMetadataUpdate::new("double").set("unit", "none")]).await?;
    let schema = table.schema().await?;
    assert_eq!(schema.field_with_name("double")?.metadata()["unit"], "none", "the metadata of a column");
    table.drop_columns(&["double", "seen", "price"]).await?;
    assert_eq!(columns_of(table).await?, ["id", "title", "vector"], "the columns after drop_columns");
    Ok(())
}

async fn compute(table: &Table) -> Result<()> {
    let manual = ComputedColumnOptions { auto_refresh_enabled: false, auto_refresh_interval_seconds: None };
    table.add_columns().computed("half", "id / 2").computed_options(manual).execute().await?;
    let schema = table.schema().await?;
    let [half] = &computed_columns(&schema)[..] else { panic!("one computed column in {schema}") };
    assert_eq!(
        (half.name.as_str(), half.inputs.as_slice()),
        ("half", ["id".to_string()].as_slice()),
        "its declaration"
    );
    assert_eq!(options_of(table, "half").await?, manual, "the options of a column without automatic refreshes");
    assert_eq!(table.count_rows(Some("half IS NULL".into())).await?, 3, "a computed column before its refresh");
    assert_refused("update of a computed column", table.update().column("half", "1").execute().await, "half");
    assert_refused("drop_columns of an input", table.drop_columns(&["id"]).await, "half");
    let unknown = table.add_columns().computed("bad", "missing * 2").execute().await;
    assert_refused("a column of an unknown one", unknown, "missing");
    assert_refused("refresh_column", table.refresh_column("half").await, "use refresh_column_async");
    table.drop_columns(&["half"]).await?;
    Ok(())
}

async fn refresh_automatically(client: &Client, table: &Table) -> Result<()> {
    let options = ComputedColumnOptions { auto_refresh_enabled: true, auto_refresh_interval_seconds: Some(2) };
    table.add_columns().computed("third", "id / 3").computed_options(options).execute().await?;
    assert_eq!(options_of(table, "third").await?, options, "the options of a column with automatic refreshes");
    table.add(films(3..6)).execute().await?;
    let opened = wait_for_job(client, &format!("{}$columns", client.namespace[0])).await?;
    let job = client.db.open_job(&opened.job_id).await?;
    let spec = job.spec().unwrap_or_default();
    assert_eq!(spec["column"], "third", "the column of the job that new rows open");
    job.cancel().await
}

/// Returns the options that the schema of a table contains, as a reader of the crate sees them.
async fn options_of(table: &Table, column: &str) -> Result<ComputedColumnOptions> {
    ComputedColumnOptions::from_metadata(table.schema().await?.field_with_name(column)?.metadata())
}

/// Waits for a job of a table.
async fn wait_for_job(client: &Client, table: &str) -> Result<JobInfo> {
    let deadline = Instant::now() + Duration::from_secs(AUTOMATION_SECONDS);
    loop {
        let jobs: Vec<_> = client.db.list_jobs(ListingOptions::default()).try_collect().await?;
        if let Some(job) = jobs.into_iter().find(|each| each.table == table) {
            return Ok(job);
        }
        assert!(Instant::now() < deadline, "new rows open no job in {AUTOMATION_SECONDS} s");
        sleep(Duration::from_millis(200)).await;
    }
}
