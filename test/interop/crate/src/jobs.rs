//! Jobs of a catalog without a runner: open, list, describe, pause, resume and cancel.

use arrow_array::cast::AsArray;
use futures::TryStreamExt;
use lancedb::database::{PauseJobStatus, ResumeJobStatus};
use lancedb::function::FunctionErrorsRequest;
use lancedb::job::{Job, JobEventsRequest};
use lancedb::listing::ListingOptions;
use lancedb::table::computed_columns::ComputedColumnOptions;
use lancedb::{Error, Result, Table};

use crate::support::{Client, assert_refused, films};

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("jobs", films(0..3)).await?;
    let manual = ComputedColumnOptions { auto_refresh_enabled: false, auto_refresh_interval_seconds: None };
    table.add_columns().computed("twice", "id * 2").computed_options(manual).execute().await?;
    let job = table.refresh_column_async("twice").await?;
    let id = job.id().expect("the id of a job").to_string();
    assert_eq!(table.refresh_column_async("twice").await?.id(), job.id(), "a second refresh of the column");
    list_and_open(client, &id).await?;
    pause_and_resume(client, &id).await?;
    cancel(client, &table, &id).await?;
    assert!(matches!(job.wait().await, Err(Error::JobCancelled { .. })), "wait for a canceled job");
    assert_refused("refresh of a plain column", table.refresh_column_async("title").await, "title");
    client.db.drop_table("jobs", &client.namespace).await
}

/// Asserts that an open job is listed and described.
pub async fn list_and_open(client: &Client, id: &str) -> Result<()> {
    let pages = client.db.list_jobs(ListingOptions::default().page_limit(1));
    let listed: Vec<_> = pages.try_collect().await?;
    let found = listed.iter().find(|each| each.job_id == id).expect("the open job in list_jobs");
    assert_eq!(found.state, "running", "the listed state of an open job");
    let opened = client.db.open_job(id).await?;
    assert_eq!(opened.state().as_deref(), Some("running"), "the state of an open job");
    assert_eq!(opened.job_type().as_deref(), Some(found.job_type.as_str()), "the type of a job");
    assert_eq!(opened.creation_ms(), Some(found.created_at_millis), "the creation of a job");
    let missing = client.db.open_job("missing").await;
    assert!(matches!(missing, Err(Error::JobNotFound { .. })), "open_job of a missing job: {missing:?}");
    Ok(())
}

async fn pause_and_resume(client: &Client, id: &str) -> Result<()> {
    let db = &client.db;
    assert_eq!(db.pause_job(id).await?, PauseJobStatus::Pausing, "pause");
    assert_eq!(db.pause_job(id).await?, PauseJobStatus::AlreadyPaused, "a second pause");
    let job = db.open_job(id).await?;
    assert_eq!(job.state().as_deref(), Some("PAUSED"), "the state of a paused job");
    assert_eq!(db.resume_job(id).await?, ResumeJobStatus::Resumed, "resume");
    assert_eq!(db.resume_job(id).await?, ResumeJobStatus::NotPaused, "a second resume");
    assert_eq!(job.status().await?, "running", "the state of a resumed job");
    Ok(())
}

async fn cancel(client: &Client, table: &Table, id: &str) -> Result<()> {
    assert!(client.db.cancel_job(id).await?, "cancel_job");
    assert!(!client.db.cancel_job("missing").await?, "cancel_job of a missing job");
    let job = client.db.open_job(id).await?;
    assert_eq!(job.state().as_deref(), Some("cancelled"), "the state of a canceled job");
    assert_eq!(states(&job, JobEventsRequest::default()).await?, ["queued", "cancelled"], "the events of the job");
    let filter = JobEventsRequest::default().filter("state = 'queued'").limit(1);
    assert_eq!(states(&job, filter).await?, ["queued"], "the filtered events of the job");
    let errors = table.function_errors(FunctionErrorsRequest::new().job_id(id).limit(10)).await?;
    assert!(errors.records.is_empty() && !errors.truncated, "the failed rows of the job: {errors:?}");
    Ok(())
}

/// Returns the states of the events of a job.
pub async fn states(job: &Job, request: JobEventsRequest) -> Result<Vec<String>> {
    let events = job.events(request).await?;
    let states = events.iter().flat_map(|batch| batch["state"].as_string::<i32>().iter().flatten());
    Ok(states.map(String::from).collect())
}
