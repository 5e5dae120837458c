// Bytes of chunks: base64 and deflate.

interface Base64Reader {
  fromBase64?: (text: string) => Uint8Array<ArrayBuffer>;
}

/** Bytes of a base64 text. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as Base64Reader).fromBase64;
  if (native) return native.call(Uint8Array, text.trim());
  const decoded = atob(text.trim());
  const bytes = new Uint8Array(decoded.length);
  for (let i = 0; i < decoded.length; i++) bytes[i] = decoded.charCodeAt(i);
  return bytes;
}

/** Bytes that a raw deflate stream holds. */
export async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
