// Why a profile has no rows, and what to try: read from the profile itself, likeliest cause first.
import type {ProfileDocument} from './document.ts';
import {formatCount, formatDuration, visibleName} from './text.ts';

export interface Explanation {
  why: string;
  tries: string[];
}

export function explainEmpty(document: ProfileDocument): Explanation | null {
  if (document.rows.length > 0) return null;
  const {totals: {threads}, window} = document;
  const length = formatDuration(window.length_ns);
  if (document.threads.length === 0) {
    return {
      why: `No thread of the target (${visibleName(document.target)}) was alive and seen in the ` +
        `${length} of the recording.`,
      tries: ['Check that the process still runs, and its pid: ps -p PID.',
              'Record the whole machine to see who waits: dwell record -a.'],
    };
  }
  if (threads.filtered_intervals > 0) {
    return {
      why: `All ${formatCount(threads.filtered_intervals)} off-CPU intervals were kept out by ` +
        `the filters of this recording (${formatDuration(threads.filtered_ns)} in all).`,
      tries: ['Record again with a smaller minimum duration or without class filters.',
              `Filters and limits in effect: ${
                document.options.map((option) => visibleName(option, 80)).join(', ') || 'none'}.`],
    };
  }
  if (threads.running_ns > 0 && threads.running_ns >= 0.5 * threads.alive_ns) {
    return {
      why: 'The threads never left the CPU: they ran for the whole time they were alive.',
      tries: ['This is CPU time, which an off-CPU profile does not explain: use a CPU profiler.',
              'Record for longer to catch rare waits: -d 30s.'],
    };
  }
  return {
    why: `No off-CPU interval was recorded in ${length}.`,
    tries: ['Record for longer: -d 30s.',
            'Look at the losses below: they say whether records could not be kept.'],
  };
}
