/** The folder that a `file://` URI names. */
export function fileFolder(uri: string): string {
  return uri.slice("file://".length);
}
