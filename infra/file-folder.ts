/** Returns the folder of a `file://` URI. */
export function fileFolder(uri: string): string {
  return uri.slice("file://".length);
}
