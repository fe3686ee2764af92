// Who the person is. A token is sent once, to open a session; then the cookie of the session is all there is, and no script can read it.
import { value } from "../lib/store";
import { api, good, OURS, Problem, problemOf, whenSignedOut, type Session } from "./client";

export type SignIn =
  { state: "asking" } | { state: "out"; problem?: Problem; ended?: boolean } | { state: "in"; session: Session };

export const signIn = value<SignIn>({ state: "asking" });

whenSignedOut(() => {
  if (signIn.get().state === "in") signIn.set({ state: "out", ended: true });
});

export async function lookWhoIsThere() {
  try {
    signIn.set({ state: "in", session: await good(api.GET("/api/v1/session")) });
  } catch (thrown) {
    const problem = problemOf(thrown);
    signIn.set({ state: "out", problem: problem.status === 401 ? undefined : problem });
  }
}

/** Throws the problem of a token that is not taken. */
export async function openSession(token: string) {
  const headers = { ...OURS, Authorization: `Bearer ${token}` };
  const session = await good(api.POST("/api/v1/session", { headers }));
  signIn.set({ state: "in", session });
}

export async function closeSession() {
  await good(api.DELETE("/api/v1/session")).catch(() => {});
  signIn.set({ state: "out" });
}
