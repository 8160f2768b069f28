#include "unwind/table_bytes.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace dwell::unwind {
namespace {

static_assert(std::endian::native == std::endian::little, "the arrays are written as they lie");

constexpr uint64_t kMagic = 0x31444e5754574400;  // "\0DWTWND1"

struct Header {
  uint64_t magic = kMagic;
  uint64_t checksum = 0;  // XXH3 of all that follows it
  uint64_t version = kTableVersion;
  uint64_t first_page = 0;
  uint64_t pages = 0;
  uint64_t rows = 0;
  uint64_t rules = 0;
  uint64_t covered_bytes = 0;
  uint64_t entries = 0;
  FaultCounts faults = {};
};
static_assert(std::has_unique_object_representations_v<Header>);
constexpr size_t kChecked = offsetof(Header, version);

uint64_t checksum_of(std::string_view bytes) {
  return XXH3_64bits(bytes.data() + kChecked, bytes.size() - kChecked);
}

template <typename T>
void append(std::string& out, const std::vector<T>& array) {
  out.append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(T));
}

template <typename T>
std::vector<T> take(std::string_view& bytes, uint64_t count) {
  std::vector<T> array(count);
  if (count > 0) std::memcpy(array.data(), bytes.data(), count * sizeof(T));
  bytes.remove_prefix(count * sizeof(T));
  return array;
}

bool is_register(uint8_t number) { return number < DWELL_REGISTER_COUNT; }

bool is_rule(const Rule& rule) {
  return rule.cfa_kind <= DWELL_CFA_RULES_FULL && is_register(rule.cfa_register) &&
         (rule.return_register == DWELL_RETURN_AT_CFA || is_register(rule.return_register)) &&
         rule.flags <= DWELL_RULE_EXACT_IP && rule.frame_kind <= DWELL_SAVED_LOST &&
         rule.rbx_kind <= DWELL_SAVED_LOST;
}

// Rows ascend, the first stands for the page's first byte, and each names a rule.
bool is_page(const dwell_unwind_page& page, const Table& table) {
  if (page.rows == 0) return true;
  if (page.first_row > table.rows.size() || page.rows > table.rows.size() - page.first_row)
    return false;
  const dwell_unwind_row* rows = table.rows.data() + page.first_row;
  if (rows[0] >> 16 != 0) return false;
  for (uint32_t i = 0; i < page.rows; ++i) {
    if ((rows[i] & 0xffff) >= table.rules.size()) return false;
    if (i > 0 && rows[i - 1] >> 16 >= rows[i] >> 16) return false;
  }
  return true;
}

bool keeps_promises(const Table& table) {
  if (!std::ranges::all_of(table.rules, is_rule)) return false;
  if (!table.rules.empty() && table.rules[RuleTable::kNoData].cfa_kind != DWELL_CFA_NONE)
    return false;
  return std::ranges::all_of(table.pages,
                             [&](const dwell_unwind_page& page) { return is_page(page, table); });
}

}  // namespace

std::string to_bytes(const Table& table) {
  Header header;
  header.first_page = table.first_page;
  header.pages = table.pages.size();
  header.rows = table.rows.size();
  header.rules = table.rules.size();
  header.covered_bytes = table.covered_bytes;
  header.entries = table.entries;
  header.faults = table.faults;
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  append(out, table.pages);
  append(out, table.rows);
  append(out, table.rules);
  header.checksum = checksum_of(out);
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

Result<Table> table_from_bytes(std::string_view bytes, const TableLimits& limits) {
  Header header;
  if (bytes.size() < sizeof header) return runtime_error("damaged: it ends inside its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic || header.version != kTableVersion)
    return runtime_error("no unwind table, or one of another version");
  if (header.checksum != checksum_of(bytes)) return runtime_error("damaged: its checksum");
  if (header.pages > limits.pages_max || header.rows > limits.rows_max ||
      header.rules > DWELL_UNWIND_RULES_MAX)
    return runtime_error("damaged: its sizes");
  bytes.remove_prefix(sizeof header);
  if (bytes.size() != header.pages * sizeof(dwell_unwind_page) +
                          header.rows * sizeof(dwell_unwind_row) + header.rules * sizeof(Rule))
    return runtime_error("damaged: its length");
  Table table;
  table.first_page = header.first_page;
  table.pages = take<dwell_unwind_page>(bytes, header.pages);
  table.rows = take<dwell_unwind_row>(bytes, header.rows);
  table.rules = take<Rule>(bytes, header.rules);
  table.covered_bytes = header.covered_bytes;
  table.entries = header.entries;
  table.faults = header.faults;
  if (!keeps_promises(table)) return runtime_error("damaged: its rows");
  return table;
}

}  // namespace dwell::unwind
