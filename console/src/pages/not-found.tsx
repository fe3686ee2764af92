import { Trans, useLingui } from "@lingui/react/macro";
import { Compass } from "lucide-react";
import { ButtonLink } from "../ui/button";
import { Failure, Nothing } from "../ui/feedback";
import { PageHead } from "../ui/page";

export function NotFound() {
  const { t } = useLingui();
  return (
    <>
      <PageHead name={t`Not found`} title={<Trans>Not found</Trans>} />
      <div className="card">
        <Nothing icon={Compass} title={<Trans>There is no such page.</Trans>}>
          <ButtonLink to="/" className="mt-2">
            <Trans>What is wrong now?</Trans>
          </ButtonLink>
        </Nothing>
      </div>
    </>
  );
}

/** A page that failed while it was drawn or loaded. The rest of the console works on. */
export function PageFailure({ error, reset }: { error: unknown; reset?: () => void }) {
  return <Failure error={error} retry={reset} />;
}
