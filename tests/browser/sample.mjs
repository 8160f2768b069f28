// Sample documents for the tests of the report, the same at every run:
//
//   small     a database and its client: realistic names, losses, warnings, all kinds of rows
//   hostile   names that are markup, script, control bytes, right-to-left marks, a megabyte long
//   large     50,000 stacks
//   empty     threads that ran all the time: no rows
//
//   node sample.mjs KIND [TEMPLATE]   prints the document, or the template with it inside
import {readFileSync, writeSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {DocumentBuilder, randomNumbers} from './document_builder.mjs';

const kMs = 1_000_000;

function addFrames(builder, module, names, kind) {
  return Object.fromEntries(names.map((name) => [name, builder.frame(name, module, kind)]));
}

function smallFrames(b) {
  const kernel = b.module('[kernel]', 'kernel');
  const libc = b.module('/usr/lib/x86_64-linux-gnu/libc.so.6');
  const server = b.module('/usr/lib/postgresql/15/bin/postgres');
  const client = b.module('/usr/lib/postgresql/15/bin/pgbench');
  const nothing = b.module('', 'unknown');
  const stripped = b.module('/opt/vendor/lib/libaudit_hook.so');
  b.document.unresolved.push({
    module: stripped, frames: 2, reason: 'the file has no symbol table and no debug file was found',
    remedy: 'Install its debug package, or set DEBUGINFOD_URLS and record again.'});
  return {
    ...addFrames(b, kernel, [
      'futex_wait_queue', '__futex_wait', 'do_futex', '__x64_sys_futex', 'do_syscall_64',
      'entry_SYSCALL_64_after_hwframe', 'schedule_hrtimeout_range', 'do_poll.constprop.0',
      '__x64_sys_poll', 'ep_poll', 'do_epoll_wait', '__x64_sys_epoll_wait', 'io_schedule',
      'folio_wait_bit_common', 'filemap_read', 'ext4_file_read_iter', 'vfs_read',
      '__x64_sys_pread64', 'exit_to_user_mode_loop', 'irqentry_exit_to_user_mode',
      'asm_sysvec_apic_timer_interrupt', 'jbd2_log_wait_commit', 'ext4_sync_file',
      '__x64_sys_fdatasync', 'handle_mm_fault', 'exc_page_fault'], 'kernel'),
    ...addFrames(b, libc, ['__futex_abstimed_wait_common', 'pthread_join', '__poll', 'epoll_wait',
                           '__pread64', 'fdatasync', 'start_thread', '__libc_start_main',
                           'do_futex_wait.constprop.0', '__memmove_avx_unaligned_erms'], 'user'),
    ...addFrames(b, server, [
      'main', 'PostmasterMain', 'ServerLoop', 'BackendStartup', 'PostgresMain', 'exec_simple_query',
      'PortalRun', 'ExecutorRun', 'ExecModifyTable', 'ExecUpdate', 'heap_update',
      'ReadBuffer_common', 'mdread', 'FileRead', 'LWLockAcquire', 'PGSemaphoreLock',
      'CommitTransactionCommand',
      'RecordTransactionCommit', 'XLogFlush', 'issue_xlog_fsync', 'ReadCommand', 'secure_read',
      'WaitEventSetWait', 'index_getnext_tid', '_bt_search', 'pglz_decompress',
      'std::vector<Row, std::allocator<Row>>::emplace_back(Row&&)'], 'user'),
    ...addFrames(b, client, ['threadRun', 'wait_on_socket_set', 'advanceConnectionState',
                             'pgbench_main'], 'user'),
    'libaudit_hook.so+0x4f2a': b.frame('libaudit_hook.so+0x4f2a', stripped, 'user', 'none'),
    lost: b.frame('[user stack lost: store full]', nothing, 'placeholder', 'placeholder'),
  };
}

const kSyscall = ['do_syscall_64', 'entry_SYSCALL_64_after_hwframe'];
const kBackend = ['PostgresMain', 'BackendStartup', 'ServerLoop', 'PostmasterMain', 'main',
                  '__libc_start_main'];
const kUpdate = ['heap_update', 'ExecUpdate', 'ExecModifyTable', 'ExecutorRun', 'PortalRun',
                 'exec_simple_query', ...kBackend];

// Names from the leaf.
const kSmallStacks = {
  join: ['futex_wait_queue', '__futex_wait', 'do_futex', '__x64_sys_futex', ...kSyscall,
         '__futex_abstimed_wait_common', 'pthread_join', 'pgbench_main', '__libc_start_main'],
  socket: ['schedule_hrtimeout_range', 'do_poll.constprop.0', '__x64_sys_poll', ...kSyscall,
           '__poll', 'wait_on_socket_set', 'threadRun', 'start_thread'],
  clientCpu: ['exit_to_user_mode_loop', 'irqentry_exit_to_user_mode',
              'asm_sysvec_apic_timer_interrupt', 'advanceConnectionState', 'threadRun',
              'start_thread'],
  command: ['ep_poll', 'do_epoll_wait', '__x64_sys_epoll_wait', ...kSyscall, 'epoll_wait',
            'WaitEventSetWait', 'secure_read', 'ReadCommand', ...kBackend],
  commit: ['jbd2_log_wait_commit', 'ext4_sync_file', '__x64_sys_fdatasync', ...kSyscall,
           'fdatasync', 'issue_xlog_fsync', 'XLogFlush', 'RecordTransactionCommit',
           'CommitTransactionCommand', 'exec_simple_query', ...kBackend],
  commitLock: ['futex_wait_queue', '__futex_wait', 'do_futex', '__x64_sys_futex', ...kSyscall,
               'do_futex_wait.constprop.0', 'PGSemaphoreLock', 'LWLockAcquire', 'XLogFlush',
               'RecordTransactionCommit', 'CommitTransactionCommand', 'exec_simple_query',
               ...kBackend],
  rowLock: ['futex_wait_queue', '__futex_wait', 'do_futex', '__x64_sys_futex', ...kSyscall,
            'do_futex_wait.constprop.0', 'PGSemaphoreLock', 'LWLockAcquire', ...kUpdate],
  read: ['io_schedule', 'folio_wait_bit_common', 'filemap_read', 'ext4_file_read_iter', 'vfs_read',
         '__x64_sys_pread64', ...kSyscall, '__pread64', 'FileRead', 'mdread', 'ReadBuffer_common',
         '_bt_search', 'index_getnext_tid', ...kUpdate.slice(1)],
  fault: ['io_schedule', 'folio_wait_bit_common', 'handle_mm_fault', 'exc_page_fault',
          '__memmove_avx_unaligned_erms', 'pglz_decompress', ...kUpdate],
  serverCpu: ['exit_to_user_mode_loop', 'irqentry_exit_to_user_mode',
              'asm_sysvec_apic_timer_interrupt',
              'std::vector<Row, std::allocator<Row>>::emplace_back(Row&&)', ...kUpdate],
  audit: ['futex_wait_queue', '__futex_wait', 'do_futex', '__x64_sys_futex', ...kSyscall,
          'libaudit_hook.so+0x4f2a', ...kUpdate],
  lost: ['ep_poll', 'do_epoll_wait', '__x64_sys_epoll_wait', ...kSyscall, 'lost'],
};

function smallBackend(b, thread, stack, random) {
  const around = (ms) => Math.round(ms * kMs * (0.7 + 0.6 * random()));
  const rq = () => around(6);
  const put = (name, wait_class, cause, count, ms) => b.row(thread, stack[name], wait_class, cause,
    {count, blocked_ns: around(ms * 0.82), run_queue_ns: rq()});
  put('command', 'interruptible', 'epoll_wait', 4100, 3900);
  put('commit', 'uninterruptible', 'fdatasync', 2050, 2300);
  put('commitLock', 'interruptible', 'futex', 1400, 1250);
  put('rowLock', 'interruptible', 'futex', 310, 640);
  put('read', 'io', 'pread64', 820, 410);
  put('fault', 'io', 'page fault', 66, 38);
  put('audit', 'interruptible', 'futex', 55, 120);
  b.row(thread, stack.serverCpu, 'preempted', 'preempted', {count: 240, run_queue_ns: around(60)});
}

// Waits of 1 ms and more: they come in bursts, at times with the CPU taken.
function smallTimeline(b, threads, stack, random) {
  b.document.timeline = {min_ns: kMs};
  const kinds = [['command', 'interruptible', 'epoll_wait', 120], ['commit', 'uninterruptible',
                 'fdatasync', 60], ['rowLock', 'interruptible', 'futex', 90],
                 ['read', 'io', 'pread64', 25]];
  for (const thread of threads) {
    let at = Math.round(random() * 40 * kMs);
    while (at < 9_700 * kMs) {
      const [name, wait_class, cause, ms] = kinds[Math.floor(random() ** 1.5 * kinds.length)];
      const blocked_ns = Math.round(kMs * (1 + ms * random() ** 2));
      const run_queue_ns = Math.round(random() < 0.25 ? 18 * kMs * random() : 0.05 * kMs);
      b.interval(thread, stack[name], wait_class, cause, at,
                 {blocked_ns, run_queue_ns, cpu: Math.floor(random() * 8)});
      at += blocked_ns + run_queue_ns + Math.round(kMs * 30 * random() ** 3);
    }
  }
}

function smallLosses(b) {
  b.loss('stacks_full', 'stacks that did not fit into the store: their time is charged to a ' +
    'placeholder frame. Raise --max-stacks.', 37, 412 * kMs);
  b.loss('rows_full', 'rows that did not fit: charged to an overflow row per class. ' +
    'Raise --max-rows.', 0, 0);
  b.loss('state_full', 'threads whose state could not be kept. Raise --max-threads.', 0, null);
  b.loss('missed_wakeup', 'intervals without a wake-up event: their run-queue time counts as ' +
    'blocked.', 12, 3 * kMs, false);
}

export function smallDocument() {
  const b = new DocumentBuilder({
    target: '-p 4242,4310', options: ['min=0', 'max-stacks=16384', 'max-rows=65536'],
    warnings: ['The kernel hides its symbols from this user at times (kptr_restrict=1): kernel ' +
               'names are from /proc/kallsyms of this boot.'],
  });
  const random = randomNumbers(7);
  const frames = smallFrames(b);
  const stack = Object.fromEntries(Object.entries(kSmallStacks).map(([name, names]) =>
    [name, b.stack(names.map((n) => frames[n]), {user_complete: name !== 'audit'})]));
  const client = b.process(4242, 'pgbench', '/usr/lib/postgresql/15/bin/pgbench',
                           'pgbench -c 8 -j 2 -T 60 --protocol=simple bench');
  const server = b.process(4310, 'postgres', '/usr/lib/postgresql/15/bin/postgres',
                           'postgres: 15/main: app bench 127.0.0.1(51234) UPDATE');
  const main = b.thread(client, 4242, 'pgbench', {running_ns: 2 * kMs});
  b.row(main, stack.join, 'interruptible', 'futex', {blocked_ns: 9998 * kMs, censored: 'both'});
  for (const tid of [4243, 4244]) {
    const worker = b.thread(client, tid, 'pgbench-worker', {running_ns: 1900 * kMs});
    b.row(worker, stack.socket, 'interruptible', 'poll',
          {count: 16000, blocked_ns: 7600 * kMs, run_queue_ns: 380 * kMs});
    b.row(worker, stack.clientCpu, 'preempted', 'preempted', {count: 90, run_queue_ns: 120 * kMs});
  }
  const backends = [];
  for (let i = 0; i < 6; ++i) {
    const thread = b.thread(server, 4310 + i, 'postgres', {
      running_ns: Math.round((900 + 300 * random()) * kMs),
      lost_ns: i === 5 ? 85 * kMs : 0,
      filtered_ns: i === 2 ? 40 * kMs : 0, filtered_intervals: i === 2 ? 900 : 0,
    });
    backends.push(thread);
    smallBackend(b, thread, stack, random);
    if (i === 5) b.row(thread, stack.lost, 'interruptible', 'epoll_wait',
                       {count: 37, blocked_ns: 412 * kMs});
    if (i === 4) b.row(thread, stack.command, 'interruptible', 'epoll_wait',
                       {blocked_ns: 260 * kMs, censored: 'right'});
  }
  b.thread(server, 4390, 'jit-warmup', {running_ns: 9000 * kMs, end: 'exited'});
  const rest = b.thread(server, 0, 'parallel worker', {running_ns: 900 * kMs, folded: 37,
                                                       schedstat: false});
  b.row(rest, b.stack([]), 'interruptible', 'futex',
        {count: 5200, blocked_ns: 6100 * kMs, run_queue_ns: 90 * kMs, overflow: true});
  b.interval(main, stack.join, 'interruptible', 'futex', 0,
             {blocked_ns: 9998 * kMs, censored: 'both'});
  smallTimeline(b, backends, stack, random);
  smallLosses(b);
  return b.finish();
}

// Every place where a name can stand holds one of these.
export const kHostileNames = [
  '<script>window.__pwned=1</script>',
  '<img src=x onerror="window.__pwned=2">',
  '"><svg onload=window.__pwned=3>',
  "');window.__pwned=4;//",
  'javascript:window.__pwned=5',
  '</script><script>window.__pwned=6</script>',
  '<!--<script>window.__pwned=7</script>',
  'left\u202etfel\u202c\u2066hidden\u2069',
  'control\u0000\u0001\u0007\u001b[31mred\u001b[0m\r\n\tend',
  '__proto__', 'constructor', 'toString', '%s%n${window.__pwned=8}{{window.__pwned=9}}',
  'lone \ud800 surrogate', '\u4e2d\u6587\u5b57\u7b26', '\u0645\u0631\u062d\u0628\u0627', '',
];

export function hostileDocument() {
  const bad = (i) => kHostileNames[i % kHostileNames.length];
  const b = new DocumentBuilder({host: bad(0), kernel: bad(1), target: bad(2),
                                 options: kHostileNames, warnings: kHostileNames});
  b.document.dwell = bad(3);
  b.document.window.start_time = bad(5);
  const modules = kHostileNames.map((name, i) => b.module(name, bad(i + 1)));
  const names = [...kHostileNames.map((name) => name || '(unnamed)'), 'L'.repeat(1 << 20),
                 '\u202e<b>'.repeat(1 << 18)];
  const frames = names.map((name, i) =>
    b.frame(name, modules[i % modules.length], ['user', 'kernel', 'placeholder'][i % 3],
            i % 4 === 0 ? bad(i) : 'symtab'));
  const stacks = names.map((_, i) => b.stack([frames[i], frames[(i + 1) % frames.length],
                                              frames[(i + 5) % frames.length]]));
  kHostileNames.forEach((name, i) => {
    const process = b.process(100 + i, name, name, name);
    const thread = b.thread(process, 200 + i, name, {running_ns: 7 * kMs, end: bad(i)});
    stacks.forEach((stack, s) => b.row(thread, stack, bad(s), bad(i + s),
                                       {count: 3, blocked_ns: (i + s + 1) * kMs}));
    b.loss(name || 'unnamed', bad(i + 1), i + 1, i % 2 ? null : i);
    b.document.unresolved.push({module: modules[i], frames: 1, reason: bad(i), remedy: bad(i + 2)});
  });
  b.document.timeline = {min_ns: 0};
  kHostileNames.forEach((_, i) => b.interval(i, stacks[i], bad(i), bad(i + 1), i * kMs,
                                             {blocked_ns: kMs, run_queue_ns: kMs}));
  b.document.stacks.push({frames: Array.from({length: 1000}, (_, i) => frames[i % frames.length]),
                          user_complete: false, truncated: true});
  b.row(0, b.document.stacks.length - 1, 'other', 'deep', {blocked_ns: 50 * kMs});
  return b.finish();
}

const kVerbs = ['read', 'write', 'flush', 'acquire', 'dispatch', 'handle', 'commit', 'resolve',
                'encode', 'await', 'schedule', 'merge', 'drain', 'publish', 'lookup'];
const kNouns = ['Request', 'Session', 'Batch', 'Segment', 'Cursor', 'Channel', 'Snapshot', 'Lease',
                'Replica', 'Bucket', 'Journal', 'Quota', 'Shard', 'Token', 'Pipeline'];

function largeFrames(b, random, count) {
  const modules = Array.from({length: 60}, (_, i) => b.module(`/opt/service/lib/libpart${i}.so`));
  const kernel = b.module('[kernel]', 'kernel');
  const pick = (list) => list[Math.floor(random() * list.length)];
  const user = Array.from({length: count}, (_, i) =>
    b.frame(`service::${pick(kNouns).toLowerCase()}::${pick(kNouns)}${i}::${pick(kVerbs)}` +
            `(service::${pick(kNouns)} const&, unsigned long)`, pick(modules)));
  const inKernel = Array.from({length: 300}, (_, i) =>
    b.frame(`${pick(kVerbs)}_${i}`, kernel, 'kernel'));
  return {user, inKernel};
}

// Stacks as a program makes them: most share their outer frames with an earlier stack.
function largeStacks(b, random, frames, count) {
  const made = Array.from({length: 24}, (_, i) => frames.user.slice(i * 6, i * 6 + 6)); // entries
  const stacks = [];
  for (let i = 0; i < count; ++i) {
    const base = made[Math.floor(random() ** 2 * made.length)];
    const kept = base.slice(0, 6 + Math.floor(random() * (base.length - 6)));
    const depth = 14 + Math.floor(random() * 26);
    while (kept.length < depth) {
      kept.push(frames.user[Math.floor(random() ** 3 * frames.user.length)]);
    }
    if (made.length < 4000) made.push(kept);
    const wait = Math.floor(random() * 50) * 6;
    stacks.push(b.stack([...frames.inKernel.slice(wait, wait + 6), ...[...kept].reverse()]));
  }
  return stacks;
}

export function largeDocument(stackCount = 50_000, threadCount = 400) {
  const b = new DocumentBuilder({target: '-a', cpus: 64, length_ns: 60_000 * kMs});
  const random = randomNumbers(2026);
  const stacks = largeStacks(b, random, largeFrames(b, random, 20_000), stackCount);
  const processes = Array.from({length: 12}, (_, i) =>
    b.process(1000 + i, `service-${i}`, `/opt/service/bin/service-${i}`,
              `service-${i} --shard ${i}`));
  const threads = Array.from({length: threadCount}, (_, i) =>
    b.thread(processes[i % processes.length], 5000 + i, `worker-${i % 40}`,
             {running_ns: Math.round(random() * 6000 * kMs)}));
  const kinds = [['interruptible', 'futex'], ['interruptible', 'epoll_wait'], ['io', 'pread64'],
                 ['uninterruptible', 'fdatasync'], ['interruptible', 'read'],
                 ['preempted', 'preempted'], ['killable', 'page fault']];
  for (const stack of stacks) {
    const [wait_class, cause] = kinds[Math.floor(random() ** 2 * kinds.length)];
    const thread = threads[Math.floor(random() * threads.length)];
    const ns = Math.round(random() ** 6 * 2000 * kMs) + 1000;
    const waits = wait_class === 'preempted' ? {run_queue_ns: ns}
      : {blocked_ns: ns, run_queue_ns: Math.round(ns / 50)};
    b.row(thread, stack, wait_class, cause, {count: 1 + Math.floor(random() * 500), ...waits});
  }
  return b.finish();
}

export function emptyDocument() {
  const b = new DocumentBuilder({target: '-p 77', options: ['min=0']});
  const process = b.process(77, 'spinner', '/usr/bin/spinner', 'spinner --forever');
  b.thread(process, 77, 'spinner', {running_ns: 10_000 * kMs});
  return b.finish();
}

export const kSamples = {
  small: smallDocument, hostile: hostileDocument, large: largeDocument, empty: emptyDocument,
};

// The page as the exporter writes it.
export function pageWith(template, document) {
  const data = gzipSync(Buffer.from(JSON.stringify(document)), {level: 6}).toString('base64');
  return template.replace('@DWELL_DATA@', () => data);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [kind, template] = process.argv.slice(2);
  const make = kSamples[kind];
  if (make === undefined) {
    console.error(`sample.mjs: no sample "${kind}"; there are ${Object.keys(kSamples).join(', ')}`);
    process.exit(2);
  }
  const text = template ? pageWith(readFileSync(template, 'utf8'), make())
                        : JSON.stringify(make(), null, 1);
  let bytes = Buffer.from(text);
  while (bytes.length > 0) bytes = bytes.subarray(writeSync(1, bytes));
}
