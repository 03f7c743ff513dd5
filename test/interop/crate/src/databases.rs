//! Databases: create, list, connect and drop, in a catalog with `TILTYARD_REMOTE_DATABASES=on`.

use futures::TryStreamExt;
use lancedb::catalog::{CatalogConnection, ConnectCatalogBuilder, CreateDatabaseRequest, DropDatabaseRequest};
use lancedb::{Error, Result};

use crate::support::{assert_refused, films, variable};

pub async fn run() -> Result<()> {
    let catalog = connect().await?;
    let one = catalog.create_database("one").await?;
    let two = catalog.create_database("two").await?;
    let again = catalog.create_database("one").await;
    assert!(matches!(again, Err(Error::DatabaseAlreadyExists { .. })), "a second database of the same name");
    catalog.create_database(CreateDatabaseRequest::new("one").exist_ok(true)).await?;
    let names: Vec<_> = catalog.list_databases(None, Some(1)).try_collect().await?;
    assert_eq!(names, ["one", "two"], "list_databases, page by page");

    one.create_table("films", films(0..1)).execute().await?;
    two.create_table("films", films(0..2)).execute().await?;
    let rows = one.open_table("films").execute().await?.count_rows(None).await?;
    assert_eq!(rows, 1, "the table of the same name in another database");
    two.drop_table("films", &[]).await?;
    assert_eq!(catalog.connect_database("one").await?.table_names().execute().await?, ["films"], "its tables");
    let missing = catalog.connect_database("missing").await;
    assert!(matches!(missing, Err(Error::DatabaseNotFound { .. })), "a missing database");

    catalog.drop_database("two").await?;
    assert_refused("drop_database with a table", catalog.drop_database("one").await, "not empty");
    catalog.drop_database(DropDatabaseRequest::new("one").cascade(true)).await?;
    catalog.drop_database(DropDatabaseRequest::new("one").ignore_missing(true)).await
}

/// Asserts that a catalog without databases refuses to list them.
pub async fn refuse() -> Result<()> {
    let names: Result<Vec<_>> = connect().await?.list_databases(None, None).try_collect().await;
    assert_refused("list_databases", names, "TILTYARD_REMOTE_DATABASES=on");
    Ok(())
}

async fn connect() -> Result<CatalogConnection> {
    ConnectCatalogBuilder::new(variable("URL")).api_key(variable("KEY")).execute().await
}
