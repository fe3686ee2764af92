// Lines of a log, kept within a limit, and what of them matches.

/** Characters that are kept in the page; of more, the oldest go. The whole log can be downloaded. */
export const MOST_CHARS = 8_000_000;

export class LogText {
  lines: string[] = [];
  /** Lines that were dropped in front. */
  dropped = 0;
  /** The next byte of the log. */
  next = 0;
  private chars = 0;
  private open = false;

  /** Adds what came; the last line may go on later. */
  add(text: string) {
    if (text === "") return;
    const parts = text.split("\n");
    const first = parts.shift() ?? "";
    if (this.open) this.lines[this.lines.length - 1] += first;
    else this.lines.push(first);
    this.lines.push(...parts);
    this.open = true;
    if (this.lines.at(-1) === "") {
      this.lines.pop();
      this.open = false;
    }
    this.chars += text.length;
    while (this.chars > MOST_CHARS && this.lines.length > 1) {
      this.chars -= (this.lines.shift()?.length ?? 0) + 1;
      this.dropped += 1;
    }
  }
}

/** Without the sequences by which programs colour their output on a terminal. */
export const plain = (line: string) =>
  line
    .replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "")
    .replace(/\r$/, "")
    .replace(/^[^]*\r/, "");

/** Indices of the lines that contain the text, whatever its case. */
export function matches(lines: string[], text: string): number[] {
  if (text === "") return [];
  const wanted = text.toLowerCase();
  const found: number[] = [];
  lines.forEach((line, index) => line.toLowerCase().includes(wanted) && found.push(index));
  return found;
}
