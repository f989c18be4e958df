// Any bytes as a ledger's file, as the log beside a good one, and as an entry.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

#include "event-reporter/ledger/ledger_file.hpp"

namespace {

using namespace gitops::reporter;
namespace fs = std::filesystem;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_entry(std::string_view bytes) {
  // A copy in a buffer of exact size, so that the sanitizer detects reads beyond its end.
  const std::vector<char> copy(bytes.begin(), bytes.end());
  const std::string_view text(copy.data(), copy.size());
  const auto head = decode_head(text);
  const auto entry = decode_entry(text);
  if (!entry) return;
  // Format 1 is not written any more.
  require(encode(*entry) == text || text.front() == 1);
  require(*decode_entry(encode(*entry)) == *entry);
  require(head && *head == head_of(*entry));
  require(entry->resource_ids().size() == entry->resources.size());
}

// A folder in memory.
class Folder {
 public:
  Folder() { require(::mkdtemp(path_.data()) != nullptr); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const char* name) const { return fs::path(path_) / name; }

 private:
  std::string path_ = "/dev/shm/ledger-fuzz-XXXXXX";
};

void put(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string get(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// With any file content the ledger opens or refuses it, its rows are right or missing, and new rows
// can be read again.
void check_file(std::string_view database, std::string_view log) {
  const Folder folder;
  const auto path = folder / "ledger.db";
  put(path, database);
  if (!log.empty()) put(folder / "ledger.db-wal", log);
  LedgerBatch batch;
  batch.rows["ns/new"] = encode({.uid = "new"});
  batch.rows["ns/old"] = std::nullopt;
  batch.notes["epoch"] = "1";
  std::size_t rows = 0;
  {
    LedgerFile file(path);
    const auto opened = file.open();
    if (!opened) {
      require(!opened.error().message.empty());
      return;
    }
    rows = opened->heads.size();
    for (const auto& [key, head] : opened->heads) {
      const auto read = file.read(key);
      require(read.has_value());
      require(read->damaged || (read->entry && read->entry->uid == head.uid));
    }
    const auto written = file.write(batch);
    require(written.has_value());
    if (!written->rebuilt.empty()) rows = 0;
  }
  LedgerFile file(path);
  const auto again = file.open();
  require(again.has_value());
  require(again->rebuilt.empty());
  require(again->damaged_rows == 0);
  require(again->heads.at("ns/new").uid == "new" && !again->heads.contains("ns/old"));
  require(again->notes.at("epoch") == "1");
  require(again->heads.size() <= rows + 1);
}

// A ledger with one row in the file and one in the log.
struct Good {
  std::string database;
  std::string log;
};
const Good& good() {
  static const Good kGood = [] {
    const Folder folder;
    const auto path = folder / "ledger.db";
    LedgerFile file(path);
    require(file.open().has_value());
    LedgerBatch batch;
    batch.rows["ns/old"] = encode({.uid = "old"});
    require(file.write(batch).has_value());
    return Good{.database = get(path), .log = get(folder / "ledger.db-wal")};
  }();
  return kGood;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'e':
      check_entry(bytes);
      break;
    case 'f':
      check_file(bytes, {});
      break;
    case 'w': {
      // The input overwrites part of the good log, so that its checksums do not stop every input.
      auto log = good().log;
      if (bytes.size() >= 2) {
        const auto at =
            (static_cast<unsigned char>(bytes[0]) * 256U + static_cast<unsigned char>(bytes[1])) %
            log.size();
        const auto rest = bytes.substr(2, log.size() - at);
        std::ranges::copy(rest, log.begin() + static_cast<std::ptrdiff_t>(at));
      }
      check_file(good().database, log);
      break;
    }
    default:
      break;
  }
  return 0;
}
