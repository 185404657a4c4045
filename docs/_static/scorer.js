// How the search orders what it finds: a heading that is the question comes first, then names, then
// words of the text. The weights that Sphinx's search asks for, with those of titles raised.
var Scorer = {
  objNameMatch: 12,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 400,
  partialTitle: 10,
  term: 4,
  partialTerm: 2,
};
