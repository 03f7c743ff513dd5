/** Returns the reason why a text is not the base of a server's URLs, such as `localhost:8265`; undefined if it is one. */
export function problemOfBaseUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    return `must begin with http:// or https:// and a host; it is ${text}`;
  if (url.username !== "" || url.password !== "") return "must not contain a name or a password";
  if (url.search !== "" || url.hash !== "") return `must not contain a query or a fragment; it is ${text}`;
  return undefined;
}
