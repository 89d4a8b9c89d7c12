// The data of the pages (schema mcveto-pages-1). Everything textual in it comes from others and is shown as text only.

export interface Input { name: string; value: string; hex: string; character: string; bits: number; where: string }
export interface Decision { step: number; at: string; name: string; text: string }
export interface State {
  kind: string; node: string; stack: string[]; state: string; values: Record<string, string>; events: string[];
  changes: boolean; notes: string[]; at: string | null; step: number | null; text?: string;
}
export interface Trace {
  number: number; status: string; means: string; reason: string; error: string; length: number; inputs: Input[];
  states: State[]; dies_at: number | null; run: number | null; why: Decision[]; story: string[];
}
export interface RunStep {
  n: number; at: string; text: string; depth: number; set: [string, string][];
  mem: [string, string, number, string][]; input: number | null;
}
export interface Run {
  title: string; total: number; left_out: number; left_out_after: number; end: string;
  registers: Record<string, string>; steps: RunStep[];
}
export interface Block { at: string; name: string; lines: [string, string, string][]; out: [string, string][] }
export interface Func { name: string; entry: string; blocks: Block[] }
export interface Invariant { at: string; name: string; calls: string[] | null; alternatives: string[][] }
export type Change = (string | number)[];
export type TimelineEvent = [string, number, string, string | null, number, Change[]];
export interface Group { error: string; node: string; members: number[]; nodes: string[]; events: string[] }
export interface Refinement { what: string; is_event: boolean; nodes: string[]; lines: string[] }
export interface Pages {
  schema: string; mcveto: string; command: string[];
  subject: {
    path: string; name: string; sha256: string | null; isa: string | null; entry: string | null; is_model: boolean;
    checked: string[];
  };
  verdict: { kind: string; headline: string; about: string | null; reason: string | null; at: string | null; found_by?: string | null };
  story: string[]; tries: string[]; inputs: Input[]; again: string[]; why: Decision[]; why_left_out: string;
  confirmed_by: string[]; assumptions: string[]; warnings: string[]; notes: string[]; aftermath: string[];
  statistics: Record<string, number>; support: Record<string, unknown>;
  automata: { name: string; states: string[]; start: string[]; errors: Record<string, string> }[];
  traces: Trace[]; complete: string | null; groups: Group[]; refinements: Refinement[]; runs: Run[];
  code: { functions: Func[]; executed: string[]; coverage: string; notes: string[] };
  invariants: Invariant[]; invariants_left_out: number;
  timeline: { events: TimelineEvent[]; left_out: number; why_empty: string; log?: [number, string, Record<string, number>][] };
}

export function readPages(): Pages {
  return JSON.parse(document.getElementById("pages")!.textContent!) as Pages;
}
