//! LanceDB Functions in a catalog without a runner: register, list, declare columns, bind secrets and drop.

use std::collections::BTreeMap;

use arrow_schema::DataType;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::TryStreamExt;
use lancedb::function::{
    FunctionApplication, FunctionArtifactContent, FunctionArtifactRequest, FunctionOutput, FunctionParameter,
    FunctionRegistrationRequest, FunctionResultField, FunctionSignature, PythonAdapterSpec, PythonEnvironmentSpec,
    PythonRuntimeSpec,
};
use lancedb::listing::ListingOptions;
use lancedb::secrets::{SecretBinding, SecretReference};
use lancedb::{FunctionVersion, Result, Table};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::jobs::list_and_open;
use crate::support::{Client, assert_refused, columns_of, films};

const DOUBLE: &str = "
def double(value: int) -> int:
    return value * 2
";

const FEATURES: &str = "
def features(title: str):
    return {'upper': title.upper(), 'size': len(title)}
";

const SCALE: &str = "
class scale:
    def __init__(self, factor: int):
        self.factor = factor

    def __call__(self, value: int) -> int:
        return value * self.factor
";

pub async fn run(client: &Client) -> Result<()> {
    let table = client.create("computed", films(0..3)).await?;
    let double = versions(client).await?;
    declare(client, &table, &double).await?;
    refresh(client, &table).await?;
    drop(client, &table, &double).await?;
    secrets(client, &table).await?;
    client.db.drop_table("computed", &client.namespace).await
}

async fn versions(client: &Client) -> Result<FunctionVersion> {
    let registration = scalar("double", DOUBLE, "int64");
    let job = client.db.create_function_async(registration.clone(), &client.namespace).await?;
    let first = job.wait().await?;
    assert_eq!((first.name(), first.namespace_path(), first.version()), ("double", &client.namespace[..], "1"));
    assert_eq!(job.status().await?, "finished", "the job of a registration");
    assert_eq!(first.signature(), &registration.signature, "the signature of the version");
    assert_eq!(register(client, registration.clone()).await?, first, "an equal registration has the same version");
    let other = FunctionRegistrationRequest { runtime: python("3.10"), ..registration.clone() };
    assert_eq!(register(client, other).await?.version(), "2", "another registration has another version");
    assert_eq!(client.db.get_function("double", "1", &client.namespace).await?, first, "get_function");
    let pages = client.db.list_functions(&client.namespace, ListingOptions::default().page_limit(1));
    let listed: Vec<_> = pages.try_collect().await?;
    assert_eq!(listed.iter().map(FunctionVersion::version).collect::<Vec<_>>(), ["1", "2"], "list_functions");
    let missing = client.db.get_function("double", "3", &client.namespace).await;
    assert_refused("get_function of a missing version", missing, "double has no version 3");
    let other = register(client, scalar("triple", DOUBLE, "int64")).await;
    assert_refused("a source without the entry point", other, "defines no function or class triple");
    Ok(first)
}

async fn declare(client: &Client, table: &Table, double: &FunctionVersion) -> Result<()> {
    table.add_columns().function_as("doubled", apply(double, "id", json!({}))).execute().await?;
    let features = register(client, features()).await?;
    let renamed = apply(&features, "title", json!({"columns": {"upper": "shout"}}));
    table.add_columns().function(renamed).execute().await?;
    table.add_columns().function_as("both", apply(&features, "title", json!({}))).execute().await?;
    let scale = register(client, scale()).await?;
    assert_eq!(scale.signature().initialization[0].name, "factor", "the arguments of a class");
    let tripled = apply(&scale, "id", json!({"initialization": {"factor": 3}}));
    table.add_columns().function_as("tripled", tripled).execute().await?;
    let columns = ["id", "title", "vector", "doubled", "shout", "size", "both", "tripled"];
    assert_eq!(columns_of(table).await?, columns, "the declared columns");
    let schema = table.schema().await?;
    assert_eq!(schema.field_with_name("shout")?.data_type(), &DataType::Utf8, "the type of a field of the result");
    assert!(matches!(schema.field_with_name("both")?.data_type(), DataType::Struct(_)), "the whole result");
    assert_eq!(table.count_rows(Some("doubled IS NULL AND shout IS NULL".into())).await?, 3, "their values");

    let text = table.add_columns().function_as("bad", apply(double, "title", json!({})));
    assert_refused("a parameter of another type", text.execute().await, "title has the type utf8");
    assert_refused(
        "update of an output",
        table.update().column("doubled", "1").execute().await,
        "doubled: is computed",
    );
    assert_refused("drop_columns of one of two outputs", table.drop_columns(&["shout"]).await, "size");
    Ok(())
}

/// Opens a job, which waits for a runner, and cancels it.
async fn refresh(client: &Client, table: &Table) -> Result<()> {
    let job = table.refresh_column_async("doubled").await?;
    assert_eq!(job.status().await?, "running", "the job of a refresh");
    list_and_open(client, job.id().expect("the id of a job")).await?;
    let again = table.refresh_column_async("doubled").await?;
    assert_eq!(again.id(), job.id(), "a second refresh of the column");
    job.cancel().await?;
    assert_eq!(job.status().await?, "cancelled", "the canceled refresh");
    Ok(())
}

async fn drop(client: &Client, table: &Table, double: &FunctionVersion) -> Result<()> {
    let drop_first = || client.db.drop_function(double.name(), double.version(), &client.namespace);
    assert_refused("drop_function of a version in use", drop_first().await, "the column doubled");
    table.drop_columns(&["doubled", "shout", "size", "both", "tripled"]).await?;
    assert_eq!(columns_of(table).await?, ["id", "title", "vector"], "the columns after drop_columns");
    assert!(drop_first().await?, "drop_function");
    assert!(!drop_first().await?, "drop_function of a missing version");
    let (dropped, job) = client.db.drop_function_async("double", "2", &client.namespace).await?;
    job.wait().await?;
    assert!(dropped, "drop_function_async");
    Ok(())
}

async fn secrets(client: &Client, table: &Table) -> Result<()> {
    let (db, namespace) = (&client.db, &client.namespace);
    db.create_secret("token", "the first value", namespace).await?;
    assert_refused(
        "a second secret of the same name",
        db.create_secret("token", "x", namespace).await,
        "already exists",
    );
    let created = db.describe_secret("token", namespace).await?;
    db.alter_secret("token", "the second value", namespace).await?;
    let altered = db.describe_secret("token", namespace).await?;
    assert_eq!((altered.name.as_str(), altered.created_at_millis), ("token", created.created_at_millis));
    let names: Vec<_> = db.list_secrets(namespace, ListingOptions::default()).try_collect().await?;
    assert_eq!(names, ["token"], "list_secrets");

    let secret_ref = SecretReference::in_namespace("token", namespace.clone());
    let bindings = vec![SecretBinding::Env { variable: "TOKEN".into(), secret_ref }];
    let registration = scalar("double", DOUBLE, "int64");
    let bound = FunctionRegistrationRequest { secret_bindings: bindings.clone(), ..registration };
    let version = register(client, bound).await?;
    assert_eq!(version.secret_bindings(), bindings, "the secrets of a version");
    table.add_columns().function_as("doubled", apply(&version, "id", json!({}))).execute().await?;
    table.drop_columns(&["doubled"]).await?;
    db.drop_secret("token", namespace).await?;
    assert_refused(
        "describe_secret of a missing secret",
        db.describe_secret("token", namespace).await,
        "does not exist",
    );
    let missing = table.add_columns().function_as("doubled", apply(&version, "id", json!({})));
    assert_refused("a column with a missing secret", missing.execute().await, "token");
    Ok(())
}

async fn register(client: &Client, registration: FunctionRegistrationRequest) -> Result<FunctionVersion> {
    client.db.create_function_async(registration, &client.namespace).await?.wait().await
}

/// Returns the application of a version with one parameter to a column, with more fields of it.
pub fn apply(version: &FunctionVersion, column: &str, more: Value) -> FunctionApplication {
    let parameter = &version.signature().inputs[0].name;
    let mut application = json!({
        "function": version.reference(),
        "inputs": [{"parameter": parameter, "kind": "column", "value": {"path": column}}],
        "output": version.signature().output,
    });
    let fields = application.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    FunctionApplication::from_json(&application.to_string()).expect("a valid application")
}

/// Returns the registration of a function from an integer to one value.
pub fn scalar(name: &str, source: &str, result: &str) -> FunctionRegistrationRequest {
    let output = FunctionOutput {
        kind: "scalar".into(),
        arrow_type: Some(result.into()),
        nullable: Some(false),
        fields: vec![],
    };
    registration(name, source, signature("value", "int64", output))
}

fn features() -> FunctionRegistrationRequest {
    let field = |name: &str, arrow_type: &str| FunctionResultField {
        name: name.into(),
        arrow_type: arrow_type.into(),
        nullable: true,
    };
    let fields = vec![field("upper", "utf8"), field("size", "int64")];
    let output = FunctionOutput { kind: "named_struct".into(), arrow_type: None, nullable: None, fields };
    registration("features", FEATURES, signature("title", "utf8", output))
}

fn scale() -> FunctionRegistrationRequest {
    let mut registration = scalar("scale", SCALE, "int64");
    registration.signature.initialization = vec![parameter("factor", "int64")];
    registration
}

fn registration(name: &str, source: &str, signature: FunctionSignature) -> FunctionRegistrationRequest {
    let module = format!("from __future__ import annotations\n{source}");
    let digest: String = Sha256::digest(&module).iter().map(|byte| format!("{byte:02x}")).collect();
    let data = BASE64_STANDARD.encode(&module);
    let artifact = FunctionArtifactRequest {
        kind: "python_callable".into(),
        digest: format!("sha256:{digest}"),
        entrypoint: name.into(),
        content: FunctionArtifactContent { encoding: "base64".into(), data },
        adapter: PythonAdapterSpec { kind: "scalar_to_arrow_batch".into(), version: 1 },
    };
    FunctionRegistrationRequest {
        name: name.into(),
        artifact,
        signature,
        runtime: python(&crate::support::variable("PYTHON_VERSION")),
        secret_bindings: vec![],
    }
}

fn signature(name: &str, arrow_type: &str, output: FunctionOutput) -> FunctionSignature {
    FunctionSignature { inputs: vec![parameter(name, arrow_type)], output, initialization: vec![] }
}

fn parameter(name: &str, arrow_type: &str) -> FunctionParameter {
    FunctionParameter { name: name.into(), arrow_type: arrow_type.into(), nullable: false, blob_access: None }
}

/// Returns a runtime without packages.
fn python(version: &str) -> PythonRuntimeSpec {
    let environment = PythonEnvironmentSpec {
        kind: "pip".into(),
        packages: vec![],
        channels: vec![],
        path: None,
        modules: vec![],
        image: None,
    };
    PythonRuntimeSpec::Python { python_version: version.into(), environment, env: BTreeMap::new() }
}
