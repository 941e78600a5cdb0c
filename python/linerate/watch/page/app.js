// The page: takes the server's messages and gives each to the view that shows it.

import { byId, say } from "/static/figures.js";
import { ArrayView } from "/static/array.js";
import { RunView } from "/static/run.js";
import { SanView } from "/static/san.js";
import { StudyView } from "/static/study.js";

const run = new RunView();
const study = new StudyView();
const array = new ArrayView();
const san = new SanView();

const state = { last: "", stream: null, over: false };

const title = (name, word) => {
  byId("title").textContent = name;
  document.title = `${word}: ${name} - Linerate`;
  say("state", word);
  byId("state").className = `stamp ${word}`;
};

const TAKEN = {
  clear: ({ kinds }) => {
    if (!kinds.length || kinds.includes("run")) run.reset();
    if (!kinds.length) array.reset();
    if (!kinds.length) study.reset();
    if (!kinds.length || kinds.includes("san")) san.reset();
    if (!kinds.length || kinds.includes("waiting")) say("waiting", "");
    if (!kinds.length || kinds.includes("trouble")) say("trouble", "");
  },
  waiting: ({ directory }) => {
    title(directory, "waiting");
    say("waiting", `${directory} is not there yet. The page begins when it is.`);
  },
  trouble: ({ message, hint }) => say("trouble", hint ? `${message} (${hint})` : message),
  study: (data) => {
    title(data.name, data.state);
    study.study(data);
  },
  run: (data) => {
    if (!study.isShown) title(data.name, data.state);
    run.run(data, study.isShown);
  },
  progress: (data) => run.progress(data),
  step: (data) => run.step(data),
  point: (data) => {
    run.point(data);
    san.point(data);
  },
  mark: (data) => run.mark(data),
  array: (data) => {
    title(data.name, "array");
    array.array(data);
  },
  array_point: (data) => array.point(data),
  lab: (data) => {
    title(data.name, data.state);
    san.lab(data);
  },
  san: (data) => san.san(data),
  traffic: (data) => san.traffic(data),
  bye: () => {
    state.over = true;
    disconnect();
    connection("the server of this page has ended; `linerate watch` shows it again");
  },
};

const connection = (text) => {
  byId("connection").textContent = text;
};

function connect() {
  if (state.stream || state.over) return;
  state.stream = new EventSource(`/events?last=${encodeURIComponent(state.last)}`);
  state.stream.addEventListener("open", () => connection("connected: the page follows by itself"));
  state.stream.addEventListener("error", () => {
    const ended = state.stream?.readyState === EventSource.CLOSED;
    connection(ended ? "not connected: open the address with its token again" : "connection lost; trying again");
  });
  for (const [kind, take] of Object.entries(TAKEN)) {
    state.stream.addEventListener(kind, (event) => {
      state.last = event.lastEventId;
      take(JSON.parse(event.data));
    });
  }
}

function disconnect() {
  state.stream?.close();
  state.stream = null;
}

// A page that is not seen asks for nothing; when it is seen again, it asks for what it missed.
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
connect();
