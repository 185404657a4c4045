// How the search orders what it finds: a heading that is the question comes first, then pages that
// have all of its words in headings, then names, then words of the text.
var Scorer = {
  objNameMatch: 12,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 400,
  partialTitle: 10,
  term: 4,
  partialTerm: 2,
  score: ([_page, _title, _anchor, _description, score, _file, kind]) =>
    kind === "title" ? score + 1000 : score,
};
