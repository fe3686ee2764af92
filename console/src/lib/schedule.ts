// A trigger in few words for lists. The node says in full what an expression means; this only names it.
import { t } from "@lingui/core/macro";
import type { Trigger } from "../api/client";
import { absolute, everySeconds } from "./time";

export function shortTrigger(trigger: Trigger): string {
  switch (trigger.type) {
    case "CRON":
      return trigger.timezone === "UTC" ? trigger.expr : `${trigger.expr} · ${trigger.timezone}`;
    case "FIXED_RATE":
      return t`every ${everySeconds(trigger.everySec)}`;
    case "FIXED_DELAY":
      return t`${everySeconds(trigger.everySec)} after each run`;
    case "ONCE":
      return trigger.at ? t`once, ${absolute(Date.parse(trigger.at), "UTC")} UTC` : t`once`;
    case "DELAY":
    case "IMMEDIATE":
      // Other words for ONCE, which the node does not answer with.
      return t`once`;
    case "MANUAL":
      return t`by hand`;
  }
}

export const zoneOf = (trigger: Trigger) => (trigger.type === "CRON" ? trigger.timezone : undefined);
