import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type AnswerTo, call, type RequestTo } from "./api.ts";
import { bytes } from "./format.ts";
import { useCall } from "./queries.ts";
import { dialog, messageOf } from "./view.tsx";

type RowsRequest = RequestTo<"listTableRows">;
type Value = NonNullable<AnswerTo<"listTableRows">["rows"][number][number]>;

/** The maximum number of characters of a value on a single line. */
const shortMax = 24;
/** The maximum size of a thumbnail in CSS pixels. */
const thumbnailMax = { width: 160, height: 80 };

/** A value of a row, with what the caller can do with it. */
export function Cell({
  value,
  request,
  onLike,
}: {
  readonly value: Value | null;
  /** The request for this value alone. */
  readonly request: RowsRequest;
  readonly onLike?: () => void;
}) {
  if (value === null) return <span class="hint">null</span>;
  const { text, length, unit, image } = value;
  const size = length === undefined ? "" : unit === "bytes" ? bytes(length) : `${length} ${unit}`;
  if (image === undefined && unit === "bytes" && imageName.test(text))
    return <OmittedImage request={request} label={`${text}, ${size}`} />;
  const isImageAlone = image !== undefined && unit === "bytes";
  const label = isImageAlone ? `${text}, ${size}` : text;
  return (
    <div class="value">
      {image && <Thumbnail image={image} label={label} />}
      {!isImageAlone && <span class={text.length > shortMax ? "mono long" : "mono"}>{cutText(value)}</span>}
      <div class="hint">
        {size}
        {length !== undefined && unit !== "bytes" && (
          <button type="button" class="toggle" onClick={() => showWhole(request)}>
            Whole value
          </button>
        )}
        {onLike && isVector(value) && (
          <button type="button" class="toggle" onClick={onLike}>
            More like this
          </button>
        )}
      </div>
    </div>
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

/** Reports whether a value looks like a vector, whose items are numbers. */
const isVector = ({ text, unit }: Value) => unit === "items" && /^\[-?\d/.test(text);

/** Returns a text with a mark if it is truncated. */
function cutText({ text, length, unit }: Value): string {
  if (length === undefined) return text;
  if (unit === "items") return text.endsWith("]") ? `${text.slice(0, -1)}, …]` : `${text}…`;
  // Bytes are shown as two digits each; the text of an image is a description instead.
  const isWhole = unit === "bytes" && text.length + 1 >= 3 * length;
  return isWhole || text === "" || imageName.test(text) ? text : `${text} …`;
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
