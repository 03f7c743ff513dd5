import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.spark.sql.SparkSession;

/** Spark with the properties of a file. It runs each line that it reads, and prints its rows, or the error, in a line. */
public class SparkSql {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    PrintStream answers = System.out;
    System.setOut(System.err);
    Properties properties = new Properties();
    properties.load(Files.newBufferedReader(Path.of(arguments[0])));
    SparkSession.Builder builder = SparkSession.builder().master("local[2]").config("spark.ui.enabled", "false");
    properties.forEach((name, value) -> builder.config(name.toString(), value.toString()));
    SparkSession spark = builder.getOrCreate();
    BufferedReader statements = new BufferedReader(new InputStreamReader(System.in));
    for (String statement = statements.readLine(); statement != null; statement = statements.readLine()) {
      try {
        List<String> rows = spark.sql(statement).toJSON().collectAsList();
        answers.println(json.writeValueAsString(Map.of("rows", rows)));
      } catch (Exception error) {
        answers.println(json.writeValueAsString(Map.of("error", error.toString())));
      }
    }
    spark.stop();
  }
}
