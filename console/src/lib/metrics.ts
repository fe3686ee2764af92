// Reads the numbers of the home page out of Prometheus' text form.

export interface Histogram {
  /** Upper bounds in order, with how many observations are at most that. */
  buckets: [number, number][];
  count: number;
}

export interface Reading {
  at: number;
  fires: number;
  ended: Record<string, number>;
  lateness: Histogram;
  dispatch: Histogram;
  values: Record<string, number>;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

export function parseMetrics(text: string, at: number): Reading {
  const reading: Reading = { at, fires: 0, ended: {}, lateness: empty(), dispatch: empty(), values: {} };
  for (const line of text.split("\n")) {
    if (line.startsWith("#")) continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const [, name = "", labels = "", shown = ""] = found;
    const number = shown === "+Inf" ? Infinity : Number(shown);
    const label = (wanted: string) => new RegExp(`(?:^|,)${wanted}="([^"]*)"`).exec(labels)?.[1];
    const histogram = name.startsWith("trigger_delay_ms_")
      ? reading.lateness
      : name.startsWith("dispatch_delay_ms_")
        ? reading.dispatch
        : undefined;
    if (histogram) {
      const most = label("le");
      if (name.endsWith("_bucket") && most !== undefined)
        addBucket(histogram, most === "+Inf" ? Infinity : Number(most), number);
      else if (name.endsWith("_count")) histogram.count += number;
    } else if (name === "schedule_fires_total") reading.fires += number;
    else if (name === "runs_ended_total") {
      const state = label("state") ?? "";
      reading.ended[state] = (reading.ended[state] ?? 0) + number;
    } else if (!name.endsWith("_bucket")) reading.values[name] = (reading.values[name] ?? 0) + number;
  }
  return reading;
}

const empty = (): Histogram => ({ buckets: [], count: 0 });

function addBucket(histogram: Histogram, most: number, count: number) {
  const known = histogram.buckets.find(([bound]) => bound === most);
  if (known) known[1] += count;
  else histogram.buckets.push([most, count]);
}

/** What was observed between two readings. */
export function between(earlier: Histogram, later: Histogram): Histogram {
  const before = new Map(earlier.buckets);
  return {
    buckets: later.buckets.map(([bound, count]) => [bound, count - (before.get(bound) ?? 0)]),
    count: later.count - earlier.count,
  };
}

/** The upper bound below which this share of the observations is, interpolated; undefined without observations. */
export function quantile(histogram: Histogram, share: number): number | undefined {
  if (histogram.count <= 0) return undefined;
  const wanted = share * histogram.count;
  let [lower, below] = [0, 0];
  for (const [bound, count] of [...histogram.buckets].sort((a, b) => a[0] - b[0])) {
    if (count >= wanted) {
      if (!Number.isFinite(bound)) return lower;
      return count === below ? bound : lower + ((bound - lower) * (wanted - below)) / (count - below);
    }
    [lower, below] = [bound, count];
  }
  return lower;
}
