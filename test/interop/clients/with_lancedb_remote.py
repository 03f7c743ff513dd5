import lancedb
from lancedb_operations import serve_lancedb
from operations import KEY, URL

serve_lancedb(lancedb.connect("db://films", api_key=KEY, host_override=URL))
