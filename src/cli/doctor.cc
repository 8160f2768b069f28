#include "cli/doctor.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "probe/doctor.h"

namespace dwell::cli {
namespace {

using Outcome = probe::Check::Outcome;

const char* word(Outcome outcome) {
  switch (outcome) {
    case Outcome::kGood:
      return "good";
    case Outcome::kLimited:
      return "limited";
    case Outcome::kMissing:
      break;
  }
  return "missing";
}

void print_json(const std::vector<probe::Check>& checks, bool works) {
  nlohmann::json list = nlohmann::json::array();
  for (const probe::Check& check : checks)
    list.push_back({{"name", check.name},
                    {"outcome", word(check.outcome)},
                    {"found", check.found},
                    {"remedy", check.remedy}});
  fmt::print("{}\n", nlohmann::json({{"works", works}, {"checks", list}}).dump(2));
}

}  // namespace

int run_doctor(bool json) {
  const auto checks = probe::examine_machine();
  const bool works = probe::reasons_against(checks).empty();
  if (json) {
    print_json(checks, works);
    return works ? 0 : 3;
  }
  for (const probe::Check& check : checks) {
    fmt::print("{:8} {:15} {}\n", word(check.outcome), check.name, check.found);
    if (!check.remedy.empty()) fmt::print("{:24} -> {}\n", "", check.remedy);
  }
  fmt::print("{}\n",
             works ? "dwell can record on this machine" : "dwell cannot record on this machine");
  return works ? 0 : 3;
}

}  // namespace dwell::cli
