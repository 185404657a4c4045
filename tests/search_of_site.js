// What the search of a built site answers: `node search_of_site.js SITE < questions.json`.
//
// The site's own scripts run as in a browser, without a page around them: the stemmer, the search
// with the weights of the site, and the index. For each question the first results are printed, as
// [title, page, anchor, score].
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const SCRIPTS = [
  "_static/base-stemmer.js",
  "_static/english-stemmer.js",
  "_static/language_data.js",
  "_static/searchtools.js",
  "searchindex.js",
];

const site = process.argv[2];
const questions = JSON.parse(fs.readFileSync(0, "utf8"));

const empty = { childNodes: [], hasChildNodes: () => false, lastChild: null };
const browser = {
  SPHINX_HIGHLIGHT_ENABLED: false,
  _: (text) => text,
  _ready: () => undefined,
  document: { getElementById: () => empty },
  console,
};
browser.window = browser;
vm.createContext(browser);
for (const script of SCRIPTS)
  vm.runInContext(fs.readFileSync(path.join(site, script), "utf8"), browser);

const answers = questions.map((question) => {
  browser.question = question;
  const found = vm.runInContext("Search._performSearch(...Search._parseQuery(question))", browser);
  return found
    .reverse()
    .slice(0, 5)
    .map(([docname, title, anchor, _description, score]) => [title, docname, anchor, score]);
});
process.stdout.write(JSON.stringify(answers));
