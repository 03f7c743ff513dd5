//! Versions, tags and branches.

use lancedb::query::QueryBase;
use lancedb::{Error, Result, Table};

use crate::support::{Client, assert_refused, films, ids, sorted};

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("versioned", films(0..3)).await?;
    table.add(films(3..6)).execute().await?;
    versions(&table).await?;
    tags(&table).await?;
    branches(client, &table).await?;
    client.db.drop_table("versioned", &client.namespace).await
}

async fn versions(table: &Table) -> Result<()> {
    let listed: Vec<u64> = table.list_versions().await?.iter().map(|each| each.version).collect();
    assert_eq!(sorted(listed), [1, 2], "list_versions");
    table.checkout(1).await?;
    assert_eq!((table.version().await?, table.count_rows(None).await?), (1, 3), "the version that is checked out");
    assert_refused("add to an older version", table.add(films(9..10)).execute().await, "Call checkout_latest()");
    table.checkout_latest().await?;
    assert_eq!((table.version().await?, table.count_rows(None).await?), (2, 6), "the latest version");
    table.checkout(1).await?;
    table.restore().await?;
    assert_eq!((table.version().await?, table.count_rows(None).await?), (3, 3), "the restored version");
    assert_refused("checkout of a missing version", table.checkout(99).await, "99");
    table.checkout_latest().await
}

async fn tags(table: &Table) -> Result<()> {
    let mut tags = table.tags().await?;
    tags.create("first", 1).await?;
    assert_refused("a second tag of the same name", tags.create("first", 2).await, "already exists");
    tags.update("first", 2).await?;
    assert_eq!(tags.get_version("first").await?, 2, "the version of a tag");
    assert_eq!(tags.list().await?["first"].version, 2, "the listed tag");
    table.checkout_tag("first").await?;
    assert_eq!((table.version().await?, table.count_rows(None).await?), (2, 6), "the version of the tag");
    table.checkout_latest().await?;
    tags.delete("first").await?;
    assert!(tags.list().await?.is_empty(), "the tags after delete");
    assert_refused("the version of a missing tag", tags.get_version("first").await, "first");
    Ok(())
}

async fn branches(client: &Client, table: &Table) -> Result<()> {
    let side = table.create_branch("side", (None, None)).await?;
    assert_eq!(side.current_branch().as_deref(), Some("side"), "current_branch");
    side.add(films(10..12)).execute().await?;
    side.update().only_if("id = 10").column("title", "'new'").execute().await?;
    side.delete("id = 0").await?;
    assert_eq!(sorted(ids(&side.query()).await?), [1, 2, 10, 11], "the rows of the branch");
    assert_eq!(sorted(ids(&table.query()).await?), [0, 1, 2], "the rows of main");
    let duplicate = table.create_branch("side", (None, None)).await;
    assert!(matches!(duplicate, Err(Error::TableAlreadyExists { .. })), "a second branch of the same name");

    let version = side.version().await?;
    let pinned = table.checkout_branch("side", Some(version - 1)).await?;
    assert_eq!(pinned.count_rows(None).await?, 5, "an older version of the branch");
    let opened = client.db.open_table("versioned").namespace(client.namespace.clone()).branch("side").execute().await?;
    assert_eq!(ids(&opened.query().only_if("title = 'new'")).await?, [10], "the opened branch");
    table.tags().await?.create("before", 2).await?;
    let earlier = table.create_branch("earlier", "before").await?;
    assert_eq!(earlier.count_rows(None).await?, 6, "a branch of a tag");

    let listed = table.list_branches().await?;
    assert_eq!(sorted(listed.keys().cloned().collect()), ["earlier", "side"], "list_branches");
    table.delete_branch("side").await?;
    assert_refused("checkout of a deleted branch", table.checkout_branch("side", None).await, "side");
    table.delete_branch("earlier").await
}
