import { i18n } from "@lingui/core";
import { I18nProvider } from "@lingui/react";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { client } from "./api/queries";
import { lookWhoIsThere, signIn } from "./api/session";
import "./app.css";
import { applyLanguage, applyTheme, language } from "./lib/prefs";
import { useValue } from "./lib/store";
import { Login } from "./pages/login";
import { router } from "./router";
import { Toasts } from "./ui/toast";

function Console() {
  const who = useValue(signIn);
  return (
    <>
      {who.state === "in" ? <RouterProvider router={router} /> : <Login who={who} />}
      <Toasts />
    </>
  );
}

applyTheme();
language.subscribe(() => void applyLanguage());
void Promise.all([applyLanguage(), lookWhoIsThere()]).then(() => {
  // Whoever comes next does not see what the one before read.
  signIn.subscribe(() => signIn.get().state !== "in" && client.clear());
  createRoot(document.getElementById("root")!).render(
    <StrictMode>
      <I18nProvider i18n={i18n}>
        <QueryClientProvider client={client}>
          <Console />
        </QueryClientProvider>
      </I18nProvider>
    </StrictMode>,
  );
});
