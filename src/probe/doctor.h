// What this machine allows, by trying rather than by guessing from settings: each check says what
// was found and, where something is missing, the exact remedy. `dwell doctor` prints it; `dwell
// record` fails early with the same words.
#pragma once

#include <string>
#include <vector>

namespace dwell::probe {

struct Check {
  enum class Outcome {
    kGood,
    kLimited,
    kMissing
  };                 // limited: recording works, something is not shown
  std::string name;  // "BTF", "capabilities", ...
  Outcome outcome = Outcome::kGood;
  std::string found;   // "kernel 6.1.0-53-amd64"
  std::string remedy;  // "" if none is needed
};

std::vector<Check> examine_machine();

// "" if recording can work; else what is missing, and the remedies.
std::string reasons_against(const std::vector<Check>& checks);

}  // namespace dwell::probe
