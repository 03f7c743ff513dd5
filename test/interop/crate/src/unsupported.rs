//! Operations that the catalog does not have: each says so, and real-time ingestion is off.

use lancedb::Result;
use lancedb::query::QueryBase;
use lancedb::table::RTEWriteSpec;

use crate::databases;
use crate::support::{Client, assert_refused, films, ids, reader};

const NO_OPERATION: &str = "this catalog has no operation";

pub async fn run(client: &Client) -> Result<()> {
    real_time_ingestion(client).await?;
    let (db, namespace) = (&client.db, &client.namespace);
    let view = db.create_view("view", "SELECT 1", namespace).await;
    assert_refused("create_view", view, NO_OPERATION);
    let table = client.create("source", films(0..1)).await?;
    let clone = db.clone_table("clone", table.uri().await?).target_namespace(namespace.clone()).execute().await;
    assert_refused("clone_table", clone, NO_OPERATION);
    table.create_branch("side", (None, None)).await?;
    assert_refused("diff_branch", table.diff_branch("side").await, NO_OPERATION);
    assert_refused("cherry_pick", table.cherry_pick("side", true).await, NO_OPERATION);
    db.drop_table("source", namespace).await?;
    databases::refuse().await
}

async fn real_time_ingestion(client: &Client) -> Result<()> {
    let table = client.create("real_time", films(0..3)).await?;
    assert_eq!(table.get_rte_spec().await?, None, "get_rte_spec");
    assert!(table.get_rte_stats(true).await?.is_none(), "get_rte_stats");
    assert_refused("enable_rte", table.enable_rte(RTEWriteSpec::unsharded()).await, NO_OPERATION);
    assert_refused("disable_rte", table.disable_rte().await, NO_OPERATION);
    assert_refused("flush_rte", table.flush_rte().await, NO_OPERATION);
    assert_refused("compact_rte", table.compact_rte().await, NO_OPERATION);
    assert_refused("checkpoint_rte", table.checkpoint_rte().await, NO_OPERATION);
    table.close_rte_writers().await?;

    let no_spec = "the table has no LSM write spec";
    assert_refused("a query with use_rte", ids(&table.query().use_rte(true)).await, no_spec);
    assert_eq!(ids(&table.query().use_rte(false)).await?.len(), 3, "a query without use_rte");
    let mut merge = table.merge_insert(&["id"]);
    merge.when_not_matched_insert_all().use_rte(true);
    assert_refused("merge_insert with use_rte", merge.execute(reader(films(3..4))).await, no_spec);
    let mut merge = table.merge_insert(&["id"]);
    merge.when_not_matched_insert_all().use_rte(false);
    assert_eq!(merge.execute(reader(films(3..4))).await?.num_inserted_rows, 1, "merge_insert without use_rte");
    client.db.drop_table("real_time", &client.namespace).await
}
