#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "common/core/async.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/http/url.hpp"

namespace gitops::demo {

// A page of the console that somebody has open: it follows the stream of the control plane, and
// connects again like a browser. Loop thread; call stop() before the destructor.
class OpenPage {
 public:
  // What the page was told: an object that is new or has changed, or one that is gone.
  struct Row {
    Clock::time_point arrived;
    bool is_gone = false;
    nlohmann::json members;  // as the stream writes them; of a gone object its topic and uid

    // A member; empty when it is null or absent.
    [[nodiscard]] std::string text(const char* member) const;
    [[nodiscard]] std::string kind() const { return text("kind"); }
    [[nodiscard]] std::string name() const { return text("name"); }
  };

  // `topics` as of the stream, such as "index,app:UID".
  OpenPage(const Executor& executor, http::Client& client, http::Url control_plane, std::string key,
           std::string topics);

  // Returns once the page is told of changes.
  Task<> wait_until_live();
  // All rows in order of arrival.
  [[nodiscard]] const std::deque<Row>& rows() const { return rows_; }
  // How often the page was told to read its data again, and the number of rows that it had the last time.
  [[nodiscard]] std::size_t resets() const { return resets_; }
  [[nodiscard]] std::size_t rows_at_reset() const { return rows_at_reset_; }
  // Waits for a row that matches, among those from index `first`; nullptr at the deadline.
  Task<const Row*> wait_for(std::function<bool(const Row&)> matches, Deadline deadline,
                            std::size_t first);
  Task<> stop();

 private:
  Task<> follow();
  Task<> read(http::ClientExchange stream);
  void take(const std::string& event, const std::string& data);

  http::Client& client_;
  http::Url url_;
  std::string key_;
  std::string topics_;
  std::string last_id_;
  bool is_live_ = false;
  std::size_t resets_ = 0;
  std::size_t rows_at_reset_ = 0;
  std::deque<Row> rows_;
  Event changed_;
  TaskGroup tasks_;
};

}  // namespace gitops::demo
