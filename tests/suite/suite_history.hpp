#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/core/async.hpp"
#include "suite/suite_bed.hpp"
#include "suite/suite_faults.hpp"
#include "suite/suite_model.hpp"
#include "suite/suite_page.hpp"
#include "suite/suite_users.hpp"

namespace gitops::test {

// The suite through a history of commits and faults: three Applications with pages that are open all the time, a fourth
// one that comes and goes, and users who ask app-proxy. `seed` alone determines faults and changes. Main thread, which
// runs the loop; call stop() before the destructor.
class SuiteHistory {
 public:
  // After this time without a fault every row has to be right. A backoff may be as long as what it backs off from, so
  // that on a busy machine, where faults take longer than they should, a calm is as long as its faults were.
  static constexpr Clock::duration kCalm = std::chrono::seconds(10);

  SuiteHistory(const Executor& executor, demo::World& world, GitServer& git, std::uint64_t seed);

  // Starts everything. All rows are right when this returns.
  Task<> start();
  Task<> stop();
  // Plays the next pair of faults, with commits before, between and after them, then waits for calm(). Adds failures.
  Task<> play_pair();
  // Waits until every row is right and the users of an outage are served again. Adds a failure for what is not after
  // `limit`, and for each request that failed and could have been answered.
  Task<> calm(Clock::duration limit = kCalm);
  // Commits to an Application and has Argo CD sync it.
  Task<> change();

  [[nodiscard]] std::string logs();
  // What was played and compared, for people.
  [[nodiscard]] std::string figures() const;
  [[nodiscard]] std::size_t faults() const { return faults_; }
  SuiteBed& bed() { return bed_; }
  SuiteUsers& users() { return *users_; }

 private:
  Task<> create_application(std::string app);
  Task<> commit(std::string app, SuiteModel::Changes changes);
  Task<> visit_or_leave();
  Task<nlohmann::json> ask(std::string document);
  // What is wrong on the open pages and on pages that are opened now.
  Task<std::vector<std::string>> wrong();
  Task<> begin(const SuiteFault& fault);
  Task<> end(const SuiteFault& fault);

  demo::World& world_;
  GitServer& git_;
  SuiteBed bed_;
  SuiteModel model_;
  std::unique_ptr<SuiteSchedule> schedule_;
  std::unique_ptr<SuitePage> page_;
  std::unique_ptr<SuiteUsers> users_;
  std::uint64_t seed_;
  std::map<std::string, std::string> repositories_;  // URLs, by Application
  std::size_t commits_ = 0;
  std::size_t faults_ = 0;
  std::map<std::string, std::size_t> kinds_;
  std::set<std::pair<std::string, std::string>> pairs_;
  std::size_t rows_compared_ = 0;
  std::size_t wrong_rows_ = 0;
  std::vector<double> calms_;  // seconds until every row was right
  std::string log_;
};

}  // namespace gitops::test
