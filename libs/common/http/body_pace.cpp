#include "common/http/body_pace.hpp"

#include <algorithm>
#include <utility>

namespace gitops::http {

void BodyPace::start(const Limits& limits, Clock::time_point now) {
  limits_ = limits;
  left_ = limits.body_grace;
  waits_since_ = now;
  end_ = limits.body_deadline ? now + *limits.body_deadline : kNever;
}

Deadline BodyPace::wait(Clock::time_point now) {
  waits_since_ = now;
  auto until = std::min(end_, now + limits_.body_timeout);
  if (limits_.min_body_rate > 0) until = std::min(until, now + left_);
  return until;
}

void BodyPace::came(std::size_t bytes, Clock::time_point now) {
  if (limits_.min_body_rate == 0) return;
  left_ -= now - std::exchange(waits_since_, now);
  const std::chrono::duration<double> worth(static_cast<double>(bytes) /
                                            static_cast<double>(limits_.min_body_rate));
  left_ += std::chrono::duration_cast<Clock::duration>(worth);
  // Limits the credit: fast data does not allow unlimited silence later.
  left_ = std::min<Clock::duration>(left_, std::max(limits_.body_grace, limits_.body_timeout));
}

}  // namespace gitops::http
