import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.ipc.ArrowReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.lance.Dataset;
import org.lance.namespace.RestNamespace;
import org.lance.namespace.model.*;
import org.lance.schema.SqlExpressions;

/** As operations.py, with Lance's client for Java. */
public class WithJava {
  interface Operation {
    List<Long> run() throws Exception;
  }

  static final BufferAllocator ALLOCATOR = new RootAllocator();
  static final RestNamespace CATALOG = new RestNamespace();
  static final List<String> FILMS = List.of(System.getenv("NAMESPACE"), "films");

  public static void main(String[] arguments) throws Exception {
    CATALOG.initialize(Map.of("uri", System.getenv("URL"), "headers.x-api-key", System.getenv("KEY")), ALLOCATOR);
    Map<String, Operation> operations = new LinkedHashMap<>();
    operations.put("create", () -> {
      CATALOG.createTable(new CreateTableRequest().id(FILMS), rows(null, 1, 2, 3));
      return null;
    });
    operations.put("append", () -> {
      CATALOG.insertIntoTable(new InsertIntoTableRequest().id(FILMS), rows(null, 4));
      return null;
    });
    operations.put("read", () -> ids(open()));
    operations.put("update", () -> {
      CATALOG.updateTable(new UpdateTableRequest().id(FILMS).predicate("id = 1").updates(List.of(List.of("title", "'new'"))));
      return null;
    });
    operations.put("delete", () -> {
      try (Dataset films = open()) {
        films.delete("id = 2");
      }
      return null;
    });
    operations.put("merge", () -> {
      MergeInsertIntoTableRequest merge = new MergeInsertIntoTableRequest().id(FILMS).on("id");
      merge.whenMatchedUpdateAll(true).whenNotMatchedInsertAll(true);
      CATALOG.mergeInsertIntoTable(merge, rows("merged", 3, 5));
      return null;
    });
    operations.put("compact", () -> {
      try (Dataset films = open()) {
        films.compact();
      }
      return null;
    });
    operations.put("overwrite", () -> {
      CATALOG.createTable(new CreateTableRequest().id(FILMS).mode("Overwrite"), rows(null, 1, 2));
      return null;
    });
    operations.put("add_column", () -> {
      try (Dataset films = open()) {
        films.addColumns(new SqlExpressions.Builder().withExpression("twice", "id * 2").build(), Optional.empty());
      }
      return null;
    });
    operations.put("index", () -> {
      CATALOG.createTableScalarIndex(new CreateTableIndexRequest().id(FILMS).column("id").indexType("BTREE"));
      return null;
    });
    operations.put("version", () -> ids(open().checkoutVersion(1)));
    operations.put("tag", () -> {
      CATALOG.createTableTag(new CreateTableTagRequest().id(FILMS).tag("first").version(1L));
      return ids(open().checkoutTag("first"));
    });
    operations.put("drop", () -> {
      CATALOG.dropTable(new DropTableRequest().id(FILMS));
      return null;
    });
    serve(operations);
  }

  static void serve(Map<String, Operation> operations) throws Exception {
    ObjectMapper json = new ObjectMapper();
    System.out.println(json.writeValueAsString(operations.keySet()));
    BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
    for (String name = names.readLine(); name != null; name = names.readLine()) {
      Map<String, Object> answer = new LinkedHashMap<>();
      try {
        answer.put("found", operations.get(name).run());
      } catch (Exception error) {
        answer.put("error", error.toString());
      }
      System.out.println(json.writeValueAsString(answer));
    }
  }

  static Dataset open() {
    return Dataset.open().allocator(ALLOCATOR).namespaceClient(CATALOG).tableId(FILMS).build();
  }

  static List<Long> ids(Dataset films) throws Exception {
    TreeSet<Long> ids = new TreeSet<>();
    try (films;
        ArrowReader batches = films.newScan().scanBatches()) {
      while (batches.loadNextBatch()) {
        BigIntVector column = (BigIntVector) batches.getVectorSchemaRoot().getVector("id");
        for (int row = 0; row < column.getValueCount(); row++) ids.add(column.get(row));
      }
    }
    return new ArrayList<>(ids);
  }

  /** Rows as a stream of Arrow. */
  static byte[] rows(String title, long... ids) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (BigIntVector id = new BigIntVector("id", ALLOCATOR);
        VarCharVector titles = new VarCharVector("title", ALLOCATOR);
        VectorSchemaRoot root = VectorSchemaRoot.of(id, titles);
        ArrowStreamWriter writer = new ArrowStreamWriter(root, null, bytes)) {
      for (int row = 0; row < ids.length; row++) {
        id.setSafe(row, ids[row]);
        titles.setSafe(row, (title == null ? "film " + ids[row] : title).getBytes());
      }
      root.setRowCount(ids.length);
      writer.writeBatch();
    }
    return bytes.toByteArray();
  }
}
