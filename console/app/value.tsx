import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type AnswerTo, call, type RequestTo } from "./api.ts";
import { bytes, counted } from "./format.ts";
import { useCall } from "./queries.ts";
import { dialog, messageOf } from "./view.tsx";

type RowsRequest = RequestTo<"listTableRows">;
type Value = NonNullable<AnswerTo<"listTableRows">["rows"][number][number]>;

/** The maximum number of characters of a value on a single line. */
const shortMax = 60;
/** The maximum size of a thumbnail in CSS pixels. */
const thumbnailMax = { width: 96, height: 32 };

/** A value of a row on one line, with the actions that the caller has for it. */
export function Cell({
  value,
  type,
  request,
  onLike,
}: {
  readonly value: Value | null;
  readonly type: string;
  /** The request for this value alone. */
  readonly request: RowsRequest;
  readonly onLike?: () => void;
}) {
  if (value === null) return <span class="hint">null</span>;
  const { text, length, unit, image } = value;
  const size = length === undefined ? "" : unit === "bytes" ? bytes(length) : `${counted(length)} ${unit}`;
  if (image === undefined && unit === "bytes" && imageName.test(text))
    return <OmittedImage request={request} label={`${text}, ${size}`} />;
  if (image !== undefined && unit === "bytes") return <Thumbnail image={image} label={`${text}, ${size}`} />;
  const short = isVector(value) ? `${counted(length ?? 0)} × ${itemOf(type)}` : firstLine(value);
  return (
    <span class="value">
      {image && <Thumbnail image={image} label={text} />}
      <span class="mono">{short}</span>
      {unit === "bytes" && <span class="hint">{size}</span>}
      {unit !== "bytes" && short !== text && (
        <button type="button" class="toggle" title={`Whole value: ${size}`} onClick={() => showWhole(request)}>
          …<span class="visually-hidden"> Whole value</span>
        </button>
      )}
      {onLike && isVector(value) && (
        <button type="button" class="toggle" onClick={onLike}>
          More like this
        </button>
      )}
    </span>
  );
}

/** Shows a whole value in a dialog. */
async function showWhole(request: RowsRequest): Promise<void> {
  const text = await call("listTableRows", { ...request, whole: true }).then(
    ({ rows }) => rows[0]?.[0]?.text ?? "null",
    (error) => messageOf(error),
  );
  const content = <pre class="log">{text}</pre>;
  await dialog(String(request.columns), content, <button type="submit">Close</button>);
}

/** The text of an image. */
const imageName = /^\w+ image$/;

/** An image that the list of rows omits because of its size: loaded by a request of its own, unless it is too large. */
function OmittedImage({ request, label }: { readonly request: RowsRequest; readonly label: string }) {
  const { data } = useCall("listTableRows", request);
  const image = data?.rows[0]?.[0]?.image;
  return image === undefined ? <span class="mono">{label}</span> : <Thumbnail image={image} label={label} />;
}

/** Reports whether a value is a vector of which only the first numbers are known. */
const isVector = ({ text, unit }: Value) => unit === "items" && /^\[-?\d/.test(text);

/** Returns the type of the items of a list. */
const itemOf = (type: string) => /^\w+<(.+?)(?:, \d+)?>$/.exec(type)?.[1] ?? type;

/** Returns the beginning of a text on a single line. */
function firstLine({ text, length, unit }: Value): string {
  const [line = ""] = text.split("\n", 1);
  if (length !== undefined && unit === "items") return line.replace(/\]$/, ", ");
  return line.slice(0, shortMax);
}

interface ThumbnailProps {
  readonly image: NonNullable<Value["image"]>;
  readonly label: string;
}

/**
 * Draws an image on a canvas, because the page's content security policy blocks all images but those of the console
 * itself. The bytes never have a URL.
 */
function Thumbnail({ image, label }: ThumbnailProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isDamaged, setDamaged] = useState(false);
  useLayoutEffect(() => {
    if (canvas.current !== null) draw(image, canvas.current).catch(() => setDamaged(true));
  }, [image.base64]);
  if (isDamaged) return <span class="hint">{label}, damaged</span>;
  return <canvas ref={canvas} role="img" aria-label={label} width="0" height="0" />;
}

async function draw({ media_type: type, base64 }: ThumbnailProps["image"], canvas: HTMLCanvasElement): Promise<void> {
  const content = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([content], { type }));
  const scale = Math.min(1, thumbnailMax.width / bitmap.width, thumbnailMax.height / bitmap.height);
  const side = (length: number) => Math.max(1, Math.round(length * scale));
  const [width, height] = [side(bitmap.width), side(bitmap.height)];
  canvas.width = width * devicePixelRatio;
  canvas.height = height * devicePixelRatio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
}
