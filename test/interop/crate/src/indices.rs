//! Indices: create, wait, list, describe, search and drop.

use std::sync::Arc;
use std::time::Duration;

use lancedb::index::scalar::{BTreeIndexBuilder, BitmapIndexBuilder, FtsIndexBuilder, FullTextSearchQuery};
use lancedb::index::vector::{IvfFlatIndexBuilder, IvfHnswSqIndexBuilder};
use lancedb::index::{Index, IndexType};
use lancedb::query::QueryBase;
use lancedb::rerankers::rrf::RRFReranker;
use lancedb::{Error, Result, Table};

use crate::support::{Client, assert_refused, films, ids};

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("indexed", films(0..300)).await?;
    create(&table).await?;
    describe(&table).await?;
    search(&table).await?;
    drop(&table).await?;
    client.db.drop_table("indexed", &client.namespace).await
}

async fn create(table: &Table) -> Result<()> {
    table.create_index(&["id"], Index::BTree(BTreeIndexBuilder::default())).execute().await?;
    table.create_index(&["title"], Index::FTS(FtsIndexBuilder::default())).execute_async().await?.wait().await?;
    let flat = Index::IvfFlat(IvfFlatIndexBuilder::default().num_partitions(4));
    table.create_index(&["vector"], flat.clone()).execute().await?;
    let bitmap = Index::Bitmap(BitmapIndexBuilder::default());
    table.create_index(&["id"], bitmap).name("id_bitmap".into()).execute().await?;
    let again = table.create_index(&["vector"], flat).replace(false).execute().await;
    assert_refused("create_index without replace", again, "already exists");
    let hnsw = Index::IvfHnswSq(IvfHnswSqIndexBuilder::default().num_partitions(1));
    table.create_index(&["vector"], hnsw).replace(true).execute().await?;
    table.create_index(&["vector"], Index::Auto).execute().await?;
    let reserved = table.create_index(&["id"], Index::Auto).name("__lance_mem_wal".into()).execute().await;
    assert_refused("create_index with a reserved name", reserved, "__lance");
    Ok(())
}

async fn describe(table: &Table) -> Result<()> {
    let names = ["id_idx", "title_idx", "vector_idx", "id_bitmap"];
    table.wait_for_index(&names, Duration::from_secs(60)).await?;
    let mut found = table.list_indices().await?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let kinds: Vec<_> =
        found.iter().map(|each| (each.name.as_str(), each.columns[0].as_str(), &each.index_type)).collect();
    let expected = [
        ("id_bitmap", "id", &IndexType::Bitmap),
        ("id_idx", "id", &IndexType::BTree),
        ("title_idx", "title", &IndexType::FTS),
        ("vector_idx", "vector", &IndexType::IvfPq),
    ];
    assert_eq!(kinds, expected, "list_indices");
    let stats = table.index_stats("id_idx").await?.expect("the statistics of an index");
    assert_eq!((stats.num_indexed_rows, stats.num_unindexed_rows), (300, 0), "index_stats");
    assert!(table.index_stats("missing").await?.is_none(), "the statistics of a missing index");
    table.add(films(300..310)).execute().await?;
    let stats = table.index_stats("id_idx").await?.expect("the statistics of an index");
    assert_eq!((stats.num_indexed_rows, stats.num_unindexed_rows), (300, 10), "index_stats after add");
    let tokens = table.tokenize("The films, numbered", "title_idx").await?;
    let tokens: Vec<_> = tokens.iter().map(|token| token.text.as_str()).collect();
    assert_eq!(tokens, ["film", "number"], "the tokens of the index");
    table.prewarm_index("title_idx").await?;
    table.prewarm_data(Some(vec!["id".into()])).await
}

async fn search(table: &Table) -> Result<()> {
    let text = FullTextSearchQuery::new("217".into());
    let matches = table.query().full_text_search(text.clone()).limit(5);
    assert_eq!(ids(&matches).await?, [217], "a search for a word");
    let nearest = table.vector_search(&[42.1_f32, 0.0])?.nprobes(20)?.refine_factor(10).limit(1);
    assert_eq!(ids(&nearest).await?, [42], "a search with the index");
    let exact = table.vector_search(&[305.1_f32, 0.0])?.bypass_vector_index().limit(1);
    assert_eq!(ids(&exact).await?, [305], "a search without the index");
    let hybrid = table.query().full_text_search(text).nearest_to(&[217.0_f32, 0.0])?;
    let hybrid = hybrid.rerank(Arc::new(RRFReranker::default())).refine_factor(10).limit(3);
    assert_eq!(ids(&hybrid).await?[0], 217, "a hybrid search");
    Ok(())
}

async fn drop(table: &Table) -> Result<()> {
    table.drop_index("id_bitmap").await?;
    assert_eq!(table.list_indices().await?.len(), 3, "the indices after drop_index");
    let missing = table.drop_index("id_bitmap").await;
    assert!(matches!(missing, Err(Error::IndexNotFound { .. })), "drop_index of a missing index: {missing:?}");
    Ok(())
}
