// A kernel on paper, for the tests of signatures: functions whose frames have a fixed size, call
// chains through them, and thread stacks on which every call leaves its words behind. It tells the
// truth that a signature must not contradict. One seed, one kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "abi/off_cpu.h"
#include "probe/signature.h"

namespace dwell::probe {

constexpr SchedulerText kSchedulerText = {0xffffffff81800000, 0xffffffff8180ffff};

// A call instruction, known by the address after it; how far above that address the next one lies
// is the size of the frame.
struct CallSite {
  uint64_t address = 0;
  uint32_t frame_words = 0;
  std::vector<size_t> callees;  // several: an indirect call
  bool operator==(const CallSite&) const = default;
};
using Chain = std::vector<CallSite>;  // leaf first, without the outermost address

// A thread that has been switched out.
struct Sleeper {
  std::vector<uint64_t> walk;   // what the kernel's walker finds: no scheduler functions
  std::vector<uint64_t> words;  // from the saved stack pointer to the top of the stack
  uint64_t walked_hash = 0;
};

class MadeUpKernel {
 public:
  explicit MadeUpKernel(uint64_t seed) : random_(seed) {
    for (size_t f = 0; f < kFunctions; ++f) functions_.push_back(make_function(f));
  }

  // From the system call's entry to the switch of stacks.
  Chain random_chain() {
    Chain chain;
    for (size_t f = 0; f < kFunctions;) {
      const CallSite& site = functions_[f][below(functions_[f].size())];
      chain.insert(chain.begin(), site);
      f = site.callees[below(site.callees.size())];
    }
    return chain;
  }

  // Calls down `chain` on a thread's stack. What a frame does not write keeps its old words.
  Sleeper sleep(std::vector<uint64_t>& stack, const Chain& chain) {
    stack.resize(kStackWords);
    size_t place = kStackWords - kUserRegisters - 1;
    write(stack, place, kOutermost);
    uint32_t gap = 2 * below(24);  // RANDOMIZE_KSTACK_OFFSET
    for (auto site = chain.rbegin(); site != chain.rend(); ++site) {
      const size_t next = place - site->frame_words - gap;
      if (gap == 0) scribble(stack, next + 1, place);
      gap = 0;
      place = next;
      write(stack, place, site->address);
    }
    scribble(stack, place - DWELL_SAVED_FRAME_WORDS, place);
    return look(stack, chain, place - DWELL_SAVED_FRAME_WORDS);
  }

  uint32_t below(size_t bound) { return static_cast<uint32_t>(random_() % bound); }

 private:
  static constexpr size_t kFunctions = 16, kStackWords = 448, kUserRegisters = 21;
  static constexpr uint64_t kOutermost = 0xffffffff81000130;

  // Functions call those of higher number; the last one switches stacks. The scheduler's are mixed
  // with others towards the leaf, as schedule() may call back into the block layer.
  std::vector<CallSite> make_function(size_t f) {
    const bool last = f + 1 == kFunctions;
    const bool scheduler = last || (f > kFunctions / 2 && below(3) != 0);
    const uint64_t base = scheduler ? kSchedulerText.start : 0xffffffff81000000;
    std::vector<CallSite> sites(last ? 1 : 1 + below(3));
    for (size_t i = 0; i < sites.size(); ++i) {
      sites[i] = {base + 0x1000 + f * 0x100 + i * 5, 1 + below(24), {}};
      for (uint32_t callee = 1 + below(2); callee > 0; --callee)
        sites[i].callees.push_back(last ? kFunctions : std::min(kFunctions - 1, f + 1 + below(5)));
      addresses_.push_back(sites[i].address);
    }
    return sites;
  }

  static void write(std::vector<uint64_t>& stack, size_t place, uint64_t word) {
    stack[place] = word;
  }
  // The locals of a frame: some written, a few with addresses of code, the rest left as it was.
  void scribble(std::vector<uint64_t>& stack, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      const uint32_t dice = below(20);
      if (dice < 8) stack[i] = random_() >> 8;
      if (dice == 8) stack[i] = addresses_[below(addresses_.size())];
    }
  }

  static Sleeper look(const std::vector<uint64_t>& stack, const Chain& chain, size_t pointer) {
    Sleeper sleeper;
    sleeper.words.assign(stack.begin() + static_cast<ptrdiff_t>(pointer), stack.end());
    for (const CallSite& site : chain)
      if (!kSchedulerText.contains(site.address)) sleeper.walk.push_back(site.address);
    sleeper.walk.push_back(kOutermost);
    sleeper.walked_hash = 1000;
    for (const uint64_t ip : sleeper.walk)
      sleeper.walked_hash = (sleeper.walked_hash ^ ip) * 0x9ddfea08eb382d69ull;
    return sleeper;
  }

  std::mt19937_64 random_;
  std::vector<std::vector<CallSite>> functions_;  // by number: their call sites
  std::vector<uint64_t> addresses_;
};

// What the probe sends after a walk (send_sample in bpf/kernel_stack.h).
inline dwell_kernel_stack_sample sample_of(const Sleeper& sleeper, dwell_signature_key key = {}) {
  dwell_kernel_stack_sample sample = {};
  sample.key = key;
  sample.walked_hash = sleeper.walked_hash;
  sample.count = static_cast<uint32_t>(sleeper.walk.size());
  sample.words =
      static_cast<uint32_t>(std::min<size_t>(sleeper.words.size(), DWELL_SIGNATURE_WORDS));
  std::copy_n(sleeper.walk.begin(), std::min<size_t>(sample.count, DWELL_SIGNATURE_PAIRS),
              sample.ips);
  std::copy_n(sleeper.words.begin(), sample.words, sample.stack);
  return sample;
}

// signature_matches in bpf/kernel_stack.h.
inline bool matches(const dwell_signature& signature, const std::vector<uint64_t>& words) {
  if (signature.words > DWELL_SIGNATURE_WORDS || signature.words > words.size()) return false;
  for (uint32_t i = 0; i < signature.pairs; ++i)
    if (words[signature.slot[i]] != signature.word[i]) return false;
  return true;
}

// The probe's map of signatures, and its search (find_signature in bpf/kernel_stack.h).
class SignatureMap {
 public:
  bool insert(const dwell_signature_key& key, const dwell_signature& signature) {
    if (entries_.size() >= entries_max) return false;
    return entries_.try_emplace({key.tid, key.cause, key.way}, signature).second;
  }
  // Null: to be walked. *key: the first way that is missing.
  const dwell_signature* find(dwell_signature_key& key, const Sleeper& sleeper) const {
    for (key.way = 0; key.way < DWELL_SIGNATURE_WAYS; ++key.way) {
      const auto found = entries_.find({key.tid, key.cause, key.way});
      if (found == entries_.end()) return nullptr;
      if (matches(found->second, sleeper.words)) return &found->second;
    }
    return nullptr;
  }
  size_t size() const { return entries_.size(); }

  size_t entries_max = 4096;

 private:
  std::map<std::tuple<uint32_t, uint16_t, uint16_t>, dwell_signature> entries_;
};

}  // namespace dwell::probe
