//! Tables and their rows: create, list, query, search, change, rename and drop.

use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt64Type};
use futures::TryStreamExt;
use lancedb::database::CreateTableMode;
use lancedb::listing::ListingOptions;
use lancedb::query::{ColumnOrdering, ExecutableQuery, QueryBase, Select};
use lancedb::table::AddDataMode;
use lancedb::{DistanceType, Error, Result, Table};

use crate::support::{Client, assert_refused, films, ids, numbers, reader, sorted, texts};

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("films", films(0..100)).await?;
    create_again(client, &table).await?;
    query(&table).await?;
    search(&table).await?;
    change(&table).await?;
    drop(client).await
}

async fn create_again(client: &Client, table: &Table) -> Result<()> {
    let again = |mode| client.db.create_table("films", films(0..3)).namespace(client.namespace.clone()).mode(mode);
    let refused = again(CreateTableMode::Create).execute().await;
    assert!(matches!(refused, Err(Error::TableAlreadyExists { .. })), "a second table: {refused:?}");
    let opened = again(CreateTableMode::exist_ok(|request| request)).execute().await?;
    assert_eq!(opened.count_rows(None).await?, 100, "exist_ok opens the table");
    again(CreateTableMode::Overwrite).execute().await?;
    assert_eq!(table.count_rows(None).await?, 3, "overwrite replaces the rows");
    table.add(films(0..100)).mode(AddDataMode::Overwrite).execute().await?;
    assert_eq!(table.count_rows(None).await?, 100, "add replaces the rows");

    let schema = films(0..0).schema();
    let empty = client.db.create_empty_table("empty", schema.clone()).namespace(client.namespace.clone());
    assert_eq!(empty.execute().await?.schema().await?, schema, "the schema of an empty table");
    let names = client.db.table_names().namespace(client.namespace.clone()).execute().await?;
    assert_eq!(names, ["empty", "films"], "table_names");
    let pages = client.db.list_tables(&client.namespace, ListingOptions::default().page_limit(1));
    assert_eq!(pages.try_collect::<Vec<_>>().await?, ["empty", "films"], "list_tables, page by page");
    let namespaces: Vec<String> = client.db.list_namespaces(&[], ListingOptions::default()).try_collect().await?;
    assert!(namespaces.contains(&client.namespace[0]), "list_namespaces: {namespaces:?}");
    Ok(())
}

async fn query(table: &Table) -> Result<()> {
    let latest = Some(vec![ColumnOrdering::desc_nulls_last("id".into())]);
    let page = table.query().only_if("id > 50 AND title LIKE '%7'").order_by(latest).limit(2).offset(1);
    assert_eq!(ids(&page).await?, [87, 77], "a page of films in descending order");
    let titles = table.query().only_if("id = 7").select(Select::columns(&["title"]));
    assert_eq!(texts(&titles, "title").await?, ["film number 7"], "the selected column");
    let computed = table.query().only_if("id = 7").select(Select::dynamic(&[("twice", "id * 2")]));
    assert_eq!(numbers::<Int64Type>(&computed, "twice").await?, [Some(14)], "an expression");
    assert_eq!(table.count_rows(Some("id < 10".into())).await?, 10, "count_rows with a filter");

    let taken = table.take_offsets(vec![5, 3]).select(Select::columns(&["id"]));
    assert_eq!(sorted(ids(&taken).await?), [3, 5], "take_offsets");
    let with_row_id = table.query().only_if("id IN (8, 9)").with_row_id();
    let row_ids = numbers::<UInt64Type>(&with_row_id, "_rowid").await?.into_iter().flatten().collect();
    assert_eq!(sorted(ids(&table.take_row_ids(row_ids)).await?), [8, 9], "take_row_ids");

    assert_eq!(table.stats().await?.num_rows, 100, "stats");
    assert!(!table.uri().await?.is_empty(), "uri");
    Ok(())
}

async fn search(table: &Table) -> Result<()> {
    let nearest = table.vector_search(&[42.1_f32, 0.0])?.limit(2);
    assert_eq!(ids(&nearest).await?, [42, 43], "the nearest films");
    let distances = numbers::<Float32Type>(&nearest, "_distance").await?;
    assert!(distances[0].is_some_and(|distance| distance < 0.011), "the distances: {distances:?}");
    let filtered = table.vector_search(&[42.1_f32, 0.0])?.only_if("id > 60").limit(1);
    assert_eq!(ids(&filtered).await?, [61], "a search with a filter");
    let in_range = table.vector_search(&[42.0_f32, 0.0])?.distance_range(Some(0.5), Some(1.5));
    assert_eq!(sorted(ids(&in_range).await?), [41, 43], "a range of distances");
    let cosine = table.vector_search(&[0.0_f32, 1.0])?.distance_type(DistanceType::Cosine).only_if("id = 5");
    assert_eq!(numbers::<Float32Type>(&cosine, "_distance").await?, [Some(1.0)], "the cosine of perpendicular vectors");
    let two = table.vector_search(&[10.0_f32, 0.0])?.add_query_vector(&[20.0_f32, 0.0])?.limit(1);
    assert_eq!(sorted(ids(&two).await?), [10, 20], "two vectors at once");
    assert_eq!(numbers::<Int32Type>(&two, "query_index").await?.len(), 2, "the index of the vector of each row");
    assert!(nearest.explain_plan(true).await?.contains("KNN"), "explain_plan");
    assert!(nearest.analyze_plan().await?.contains("metrics="), "analyze_plan");
    Ok(())
}

async fn change(table: &Table) -> Result<()> {
    let version = table.version().await?;
    let added = table.add(films(100..110)).execute().await?;
    assert_eq!(added.version, version + 1, "the version of add");
    assert_eq!(table.count_rows(None).await?, 110, "the rows after add");

    let updated = table.update().only_if("id >= 108").column("title", "concat(title, '!')").execute().await?;
    assert_eq!(updated.rows_updated, 2, "update");
    let titles = table.query().only_if("id = 109").select(Select::columns(&["title"]));
    assert_eq!(texts(&titles, "title").await?, ["film number 109!"], "the updated title");
    let malformed = table.update().only_if("id = 1").column("vector", "[5.0]").execute().await;
    assert_refused("update with a vector of one dimension", malformed, "has length 1");
    assert_eq!(table.count_rows(Some("vector IS NULL".into())).await?, 0, "the vectors after a refused update");

    let mut upsert = table.merge_insert(&["id"]);
    upsert.when_matched_update_all(None).when_not_matched_insert_all();
    let merged = upsert.execute(reader(films(105..115))).await?;
    assert_eq!((merged.num_updated_rows, merged.num_inserted_rows), (5, 5), "merge_insert");
    let mut replace = table.merge_insert(&["id"]);
    replace
        .when_matched_update_all(Some("target.id = 113".into()))
        .when_not_matched_by_source_delete(Some("id > 112".into()));
    let merged = replace.execute(reader(films(113..114))).await?;
    assert_eq!((merged.num_updated_rows, merged.num_deleted_rows), (1, 1), "merge_insert that deletes");

    let deleted = table.delete("id >= 100").await?;
    assert_eq!(deleted.num_deleted_rows, 14, "delete");
    assert_eq!(table.count_rows(None).await?, 100, "the rows after delete");
    Ok(())
}

async fn drop(client: &Client) -> Result<()> {
    let namespace = &client.namespace;
    client.db.rename_table("empty", "renamed", namespace, namespace).await?;
    client.db.drop_table("renamed", namespace).await?;
    client.db.drop_table_async("films", namespace).await?.wait().await?;
    let names = client.db.table_names().namespace(namespace.clone()).execute().await?;
    assert!(names.is_empty(), "the tables after drop_table: {names:?}");
    let missing = client.db.open_table("films").namespace(namespace.clone()).execute().await;
    assert!(matches!(missing, Err(Error::TableNotFound { .. })), "open_table of a dropped table: {missing:?}");
    Ok(())
}
