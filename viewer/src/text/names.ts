// Names from recordings: they may have any characters, and are only ever text.

// Controls, line separators, and characters that turn the direction of text or are not seen.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/gu;

/** Text with escapes instead of characters that are not seen. */
export function cleaned(text: string): string {
  return text.replace(UNSEEN, (found) => {
    const code = found.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Last part of a path. */
export function fileName(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
}

/** Text that is cut to so many characters. */
export function shortened(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, Math.max(0, limit - 1))}\u2026`;
}
