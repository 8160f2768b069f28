// How an interval lies to the window: who sleeps through all of it is either stuck or idle.
export const kInside = 'inside';
export const kEdges = [kInside, 'the whole window', 'began before', 'went on after'];
export const kEdgeOf: Record<string, string> =
  {no: kInside, left: 'began before', right: 'went on after', both: 'the whole window'};
