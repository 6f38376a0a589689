// The server: requests, the session, and the live stream.

let change = "";

/** An error with the fields that all commands show. */
export class Refused extends Error {
  constructor(error) {
    super(error.message);
    this.fields = error;
  }
}

async function answered(response) {
  const document = await response.json();
  if (!response.ok) throw new Refused(document.error ?? { message: response.statusText });
  return document;
}

export async function get(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given);
  return answered(await fetch(query.size ? `${path}?${query}` : path));
}

/**
 * One place on a page that shows answers: the newest question's, whenever they arrive.
 * An answer, or an error, that a later question overtook is dropped.
 */
export function newestAnswer(show, fail) {
  let asked = 0;
  return async (path, parameters) => {
    const mine = (asked += 1);
    try {
      const answer = await get(path, parameters);
      if (mine === asked) show(answer);
    } catch (error) {
      if (mine === asked) fail(error);
    }
  };
}

export async function post(path, body = {}) {
  const headers = { "Content-Type": "application/json", "X-Viewkeeper-Change": change };
  return answered(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** Whether we may look; a token in the address is handed in and forgotten. */
export async function opened() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    await login(token).catch(() => {});
  }
  const session = await get("/api/session");
  change = session.change ?? "";
  return session.open;
}

export async function login(token) {
  const session = await answered(await fetch("/api/login", { method: "POST", body: token }));
  change = session.change;
}

/** Call `onMoment` with every moment, and `onState` with whether the stream is there. */
export function listen(onMoment, onState) {
  const stream = new EventSource("/api/events");
  stream.addEventListener("moment", (event) => {
    onState(true);
    onMoment(JSON.parse(event.data));
  });
  stream.addEventListener("error", () => onState(false));
}
