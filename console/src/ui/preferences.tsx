import { useLingui } from "@lingui/react/macro";
import { Settings2 } from "lucide-react";
import type { ReactNode } from "react";
import { language, theme, times } from "../lib/prefs";
import { useValue } from "../lib/store";
import { Button } from "./button";
import { Choice, Menu } from "./menu";

export function Preferences({ label, children }: { label: string; children?: ReactNode }) {
  const { t } = useLingui();
  return (
    <Menu
      trigger={
        <Button kind="ghost" aria-label={label}>
          <Settings2 aria-hidden className="size-4.5" />
        </Button>
      }
    >
      <Choice
        label={t`Language`}
        value={useValue(language)}
        onChange={language.set}
        of={[
          ["auto", t`as the browser`],
          ["en", "English"],
          ["zh-Hans", "简体中文"],
        ]}
      />
      <Choice
        label={t`Theme`}
        value={useValue(theme)}
        onChange={theme.set}
        of={[
          ["system", t`as the system`],
          ["light", t`light`],
          ["dark", t`dark`],
        ]}
      />
      <Choice
        label={t`Times`}
        value={useValue(times)}
        onChange={times.set}
        of={[
          ["relative", t`relative`],
          ["local", t`in my zone`],
          ["utc", "UTC"],
        ]}
      />
      {children}
    </Menu>
  );
}
