//! Permutations of the data loader: splits, shuffles, filters, and a permutation that is a table of the catalog.

use arrow_array::RecordBatch;
use arrow_array::types::UInt64Type;
use futures::TryStreamExt;
use lancedb::dataloader::permutation::builder::{PermutationBuilder, ShuffleStrategy};
use lancedb::dataloader::permutation::reader::PermutationReader;
use lancedb::dataloader::permutation::split::{SplitSizes, SplitStrategy};
use lancedb::query::{QueryExecutionOptions, Select};
use lancedb::{Result, Table};

use crate::support::{Client, assert_refused, films, ids_in, numbers, sorted};

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("loaded", films(0..50)).await?;
    table.add(films(50..100)).execute().await?;
    let identity = PermutationReader::identity(table.base_table().clone()).await?;
    assert_eq!(ids_in(&read(&identity).await?), (0..100).collect::<Vec<_>>(), "the table in its own order");
    let taken = identity.take_offsets(&[7, 99, 7], Select::columns(&["id"])).await?;
    assert_eq!(ids_in(&[taken]), [7, 99, 7], "offsets of the table");

    shuffle(&table).await?;
    split(&table).await?;
    persist(client, &table).await?;
    client.db.drop_table("loaded", &client.namespace).await
}

async fn shuffle(table: &Table) -> Result<()> {
    let random = || ShuffleStrategy::Random { seed: Some(1), clump_size: None };
    let build =
        || PermutationBuilder::new(table.clone()).with_shuffle_strategy(random()).with_filter("id >= 90".into());
    let first = reader(table, &build().build().await?, 0).await?;
    let order = ids_in(&read(&first).await?);
    assert_eq!(sorted(order.clone()), (90..100).collect::<Vec<_>>(), "the filtered rows");
    assert_ne!(order, (90..100).collect::<Vec<_>>(), "the shuffled rows");
    let second = reader(table, &build().build().await?, 0).await?;
    assert_eq!(ids_in(&read(&second).await?), order, "the order of the same seed");
    let page = first.with_offset(3).await?.with_limit(2).await?;
    assert_eq!(ids_in(&read(&page).await?), order[3..5], "a part of the permutation");
    Ok(())
}

async fn split(table: &Table) -> Result<()> {
    let sizes = SplitSizes::Counts(vec![80, 20]);
    let random = SplitStrategy::Random { seed: Some(1), sizes, clump_size: None };
    let names = Some(vec!["train".to_string(), "test".to_string()]);
    let permutation = PermutationBuilder::new(table.clone()).with_split_strategy(random, names).build().await?;
    let train = ids_in(&read(&reader(table, &permutation, 0).await?).await?);
    let test = ids_in(&read(&reader(table, &permutation, 1).await?).await?);
    assert_eq!((train.len(), test.len()), (80, 20), "the sizes of the splits");
    assert_eq!(sorted([train, test].concat()), (0..100).collect::<Vec<_>>(), "each row is in one split");

    let hash = SplitStrategy::Hash { columns: vec!["title".into()], split_weights: vec![1, 1], discard_weight: 0 };
    let permutation = PermutationBuilder::new(table.clone()).with_split_strategy(hash, None).build().await?;
    assert_eq!(permutation.count_rows(None).await?, 100, "a split by hashes");
    let calculated = SplitStrategy::Calculated { calculation: "id % 4".into() };
    let permutation = PermutationBuilder::new(table.clone()).with_split_strategy(calculated, None).build().await?;
    assert_eq!(ids_in(&read(&reader(table, &permutation, 3).await?).await?).len(), 25, "a calculated split");
    let bootstrap = SplitStrategy::Bootstrap { num_samples: 150, sizes: SplitSizes::Fixed(1), seed: Some(1) };
    let permutation = PermutationBuilder::new(table.clone()).with_split_strategy(bootstrap, None).build().await?;
    assert_eq!(reader(table, &permutation, 0).await?.count_rows(), 150, "samples with repetitions");
    Ok(())
}

/// Stores a permutation in the catalog, and reads it after the table has changed.
async fn persist(client: &Client, table: &Table) -> Result<()> {
    // The builder creates tables in the root only.
    let name = format!("permutation_{}", client.namespace[0]);
    let builder = PermutationBuilder::new(table.clone()).with_filter("id < 10".into());
    builder.persist(client.db.database().clone(), name.clone()).build().await?;
    table.delete("id < 5").await?;
    table.add(films(200..210)).execute().await?;
    let stored = client.db.open_table(&name).execute().await?;
    assert_eq!(numbers::<UInt64Type>(&stored.query(), "split_id").await?, [Some(0); 10], "the stored permutation");
    let reader = reader(table, &stored, 0).await?;
    assert_eq!(
        ids_in(&read(&reader).await?),
        (0..10).collect::<Vec<_>>(),
        "the rows of the version of the permutation"
    );
    let taken = reader.take_offsets(&[9, 0], Select::columns(&["id"])).await?;
    assert_eq!(ids_in(&[taken]), [9, 0], "offsets of the permutation");
    let empty = PermutationReader::try_from_tables(table.base_table().clone(), stored.base_table().clone(), 1).await;
    assert_refused("a split without rows", empty, "No rows found");
    client.db.drop_table(&name, &[]).await
}

async fn reader(table: &Table, permutation: &Table, split: u64) -> Result<PermutationReader> {
    PermutationReader::try_from_tables(table.base_table().clone(), permutation.base_table().clone(), split).await
}

async fn read(reader: &PermutationReader) -> Result<Vec<RecordBatch>> {
    reader.read(Select::columns(&["id"]), QueryExecutionOptions::default()).await?.try_collect().await
}
