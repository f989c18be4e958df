#include "common/graphql/executor.hpp"

#include <algorithm>
#include <exception>

#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include "common/core/json_text.hpp"
#include "common/core/log.hpp"
#include "common/core/task_group.hpp"
#include "common/core/text.hpp"
#include "common/graphql/leaf.hpp"
#include "common/graphql/print.hpp"

namespace gitops::graphql {
namespace {

constexpr std::size_t kShortList = 64;  // items written without checking the clock
constexpr std::size_t kMaxReserve = std::size_t{1} << 20;  // bytes
constexpr auto kSlice = std::chrono::milliseconds(5);

const Log& logger() {
  static const Log log("graphql");
  return log;
}

Error internal_error(const char* what) {
  return Error{.code = ErrorCode::internal, .message = what};
}

bool is_cancellation(const std::exception& error) {
  const auto* system = dynamic_cast<const boost::system::system_error*>(&error);
  return system && system->code() == asio::error::operation_aborted;
}

bool is_text(const Type& type) {
  return !type.is_list() && type.named->kind == TypeKind::scalar &&
         (type.named->scalar == ScalarKind::string || type.named->scalar == ScalarKind::id);
}

// Returns the pointer that rows receive as their parent.
const void* data_of(const Value& value) {
  const auto* object = value.get<Value::Object>();
  return object ? object->data : static_cast<const void*>(value.get<JsonSlice>());
}

}  // namespace

std::string_view Call::field() const {
  return field_->field->name;
}
bool Call::selects(std::string_view field) const {
  return field_->execution->selects(*field_, field, Execution::Depth::own);
}

bool Call::selects_below(std::string_view field) const {
  return field_->execution->selects(*field_, field, Execution::Depth::any);
}

Execution::Execution(const Schema& schema, const Bindings& bindings, const Document& document,
                     const Operation& operation, Variables variables, ExecutionOptions options)
    : schema_(schema),
      bindings_(bindings),
      document_(document),
      operation_(operation),
      variables_(std::move(variables)),
      options_(options) {
  if (const NamedType* root = schema.root(operation.kind)) {
    root_ = plan_of(*root, {operation.selection_set});
  }
}

// --- Planning ---

std::unique_ptr<Plan> Execution::plan_of(const NamedType& type,
                                         const std::vector<const SelectionSet*>& sets) {
  auto plan = std::make_unique<Plan>();
  plan->type = &type;
  Collected into{*plan};
  for (const SelectionSet* set : sets) collect(into, *set);
  finish(*plan);
  return plan;
}

void Execution::collect(Collected& into, const SelectionSet& set) {
  Plan& plan = into.plan;
  for (const Selection& selection : set.selections) {
    if (plan.refusal || stop_) return;
    switch (selection.kind) {
      case Selection::Kind::field: {
        if (!is_included(plan, selection.directives)) continue;
        const std::string_view key = selection.response_key();
        const auto [place, is_new] = into.by_key.emplace(key, plan.fields.size());
        if (is_new) {
          const Field* field = schema_.field_of(*plan.type, selection.name.text);
          if (!field) {  // refused by the validator
            into.by_key.erase(place);
            continue;
          }
          PlannedField& made = plan.fields.emplace_back();
          made.key = key;
          ((made.label = ",\"") += key) += "\":";
          made.field = field;
          made.execution = this;
          made.nodes.push_back(&selection);
          if (++planned_ > options_.max_fields) {
            stop_ =
                coded_error("The operation needs more than " + std::to_string(options_.max_fields) +
                                " fields, the limit of this server.",
                            "QUERY_TOO_COMPLEX", 400);
          }
        } else {
          plan.fields[place->second].nodes.push_back(&selection);
        }
        break;
      }
      case Selection::Kind::inline_fragment:
        if (is_included(plan, selection.directives) &&
            applies(selection.type_condition.text, *plan.type)) {
          collect(into, *selection.selection_set);
        }
        break;
      case Selection::Kind::spread: {
        const std::string_view name = selection.name.text;
        if (std::ranges::find(into.visited, name) != into.visited.end()) continue;
        if (!is_included(plan, selection.directives)) continue;
        into.visited.push_back(name);
        const Fragment* fragment = document_.fragment(name);
        if (fragment && applies(fragment->type_condition.text, *plan.type)) {
          collect(into, *fragment->selection_set);
        }
        break;
      }
    }
  }
}

bool Execution::applies(std::string_view type_condition, const NamedType& type) const {
  if (type_condition.empty()) return true;
  const NamedType* condition = schema_.find(type_condition);
  return condition && (condition == &type || condition->has_subtype(type));
}

bool Execution::is_included(Plan& plan, List<Directive> directives) {
  for (const std::string_view name : {"skip", "include"}) {
    for (const Directive& directive : directives) {
      if (directive.name.text != name) continue;
      const auto given =
          arguments(schema_.directive(name)->arguments, directive.arguments, directive.at);
      if (!given) {
        plan.refusal = given.error();
        return false;
      }
      if (InputView(&*given)["if"].is_true() == (name == "skip")) return false;
      break;
    }
  }
  return true;
}

void Execution::finish(Plan& plan) {
  for (PlannedField& field : plan.fields) {
    field.is_typename = field.field == &schema_.typename_field();
    if (field.is_typename) continue;
    field.row = bindings_.row(*field.field);
    auto given =
        arguments(field.field->arguments, field.nodes.front()->arguments, field.nodes.front()->at);
    if (given) {
      field.arguments = *given;
    } else {
      field.refusal = std::move(given.error());
    }
    for (const Selection* node : field.nodes) {
      if (!node->selection_set) continue;
      field.awaits_below =
          field.awaits_below || awaits(*node->selection_set, *field.field->type->named);
    }
    field.awaits = field.awaits_below || (field.row && field.row->later);
    plan.awaits = plan.awaits || field.awaits;
  }
}

// Returns whether a row of a field below must wait, for any type that the parent may have.
bool Execution::awaits(const SelectionSet& set, const NamedType& parent) {
  const auto [known, is_new] = awaiting_.emplace(&set, false);
  if (!is_new) return known->second;
  bool found = false;
  for (const Selection& selection : set.selections) {
    if (found) break;
    if (selection.kind == Selection::Kind::spread) {
      const Fragment* fragment = document_.fragment(selection.name.text);
      const NamedType* type = fragment ? schema_.find(fragment->type_condition.text) : nullptr;
      found = type && awaits(*fragment->selection_set, *type);
    } else if (selection.kind == Selection::Kind::inline_fragment) {
      const std::string_view condition = selection.type_condition.text;
      const NamedType* type = condition.empty() ? &parent : schema_.find(condition);
      found = type && awaits(*selection.selection_set, *type);
    } else {
      const Field* field = schema_.field_of(parent, selection.name.text);
      if (!field || field == &schema_.typename_field()) continue;
      if (parent.kind == TypeKind::object) {
        const Row* row = bindings_.row(*field);
        found = row && row->later;
      }
      for (const NamedType* type : parent.possible) {
        const Field* own = type->field(field->name);
        const Row* row = own ? bindings_.row(*own) : nullptr;
        found = found || (row && row->later);
      }
      if (!found && selection.selection_set) {
        found = awaits(*selection.selection_set, *field->type->named);
      }
    }
  }
  awaiting_[&set] = found;
  return found;
}

const Plan* Execution::plan_below(const PlannedField& field, const NamedType& type) {
  for (const auto& [known, plan] : field.plans) {
    if (known == &type) return plan.get();
  }
  std::vector<const SelectionSet*> sets;
  for (const Selection* node : field.nodes) {
    if (node->selection_set) sets.push_back(node->selection_set);
  }
  return field.plans.emplace_back(&type, plan_of(type, sets)).second.get();
}

std::vector<std::string_view> Execution::root_fields() const {
  std::vector<std::string_view> names;
  if (!root_) return names;
  for (const PlannedField& field : root_->fields) names.push_back(field.field->name);
  return names;
}

bool Execution::selects(const PlannedField& field, std::string_view name, Depth depth) const {
  std::vector<const SelectionSet*> open;
  std::vector<std::string_view> visited;
  for (const Selection* node : field.nodes) open.push_back(node->selection_set);
  while (!open.empty()) {
    const SelectionSet* set = open.back();
    open.pop_back();
    if (!set) continue;
    for (const Selection& selection : set->selections) {
      if (selection.kind == Selection::Kind::field) {
        if (selection.name.text == name) return true;
        if (depth == Depth::any) open.push_back(selection.selection_set);
      } else if (selection.kind == Selection::Kind::inline_fragment) {
        open.push_back(selection.selection_set);
      } else if (std::ranges::find(visited, selection.name.text) == visited.end()) {
        visited.push_back(selection.name.text);
        const Fragment* fragment = document_.fragment(selection.name.text);
        if (fragment) open.push_back(fragment->selection_set);
      }
    }
  }
  return false;
}

std::expected<Input, ResponseError> Execution::arguments(const std::vector<InputValue>& definitions,
                                                         List<Argument> given, std::uint32_t at) {
  const auto refuse = [&](std::string message, std::uint32_t place) {
    return std::unexpected(ResponseError{std::move(message), {document_.locate(place)}});
  };
  std::pmr::vector<InputMember> members(arena_.resource());
  for (const InputValue& definition : definitions) {
    const std::string_view type = definition.type->text;
    const auto named = [&] { return "Argument \"" + std::string(definition.name) + "\" of "; };
    const Argument* argument = nullptr;
    for (const Argument& one : given) {
      if (one.name.text == definition.name) argument = &one;
    }
    if (!argument) {
      if (definition.default_value) {
        members.push_back({definition.name, *definition.default_value});
      } else if (definition.type->is_non_null()) {
        return refuse(named() + "required type \"" + std::string(type) + "\" was not provided.",
                      at);
      }
      continue;
    }
    const Literal& literal = argument->value;
    bool is_null = literal.kind == LiteralKind::null;
    if (literal.kind == LiteralKind::variable) {
      const Input* variable = variables_.find(literal.text);
      if (!variable) {
        if (definition.default_value) {
          members.push_back({definition.name, *definition.default_value});
        } else if (definition.type->is_non_null()) {
          return refuse(named() + "required type \"" + std::string(type) +
                            "\" was provided the variable \"$" + std::string(literal.text) +
                            "\" which was not provided a runtime value.",
                        literal.at);
        }
        continue;
      }
      is_null = variable->kind == Input::Kind::null;
    }
    if (is_null && definition.type->is_non_null()) {
      return refuse(named() + "non-null type \"" + std::string(type) + "\" must not be null.",
                    literal.at);
    }
    const auto value = coerce_literal(literal, *definition.type, &variables_, arena_);
    if (!value) {
      return refuse("Argument \"" + std::string(definition.name) + "\" has invalid value " +
                        print(literal) + ".",
                    literal.at);
    }
    members.push_back({definition.name, *value});
  }
  Input made;
  made.kind = Input::Kind::object;
  made.members = {members.data(), static_cast<std::uint32_t>(members.size())};
  return made;
}

// --- Writing ---

// Records an error at a path of the response; always returns false.
bool Execution::add(ResponseError error, const PlannedField* field, const Path* path) {
  if (error.locations.empty() && field) {
    for (const Selection* node : field->nodes)
      error.locations.push_back(document_.locate(node->at));
  }
  if (path) {
    std::vector<const Path*> parts;
    for (const Path* part = path; part; part = part->parent) parts.push_back(part);
    char separator = '[';
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      error.path += separator;
      separator = ',';
      if ((*part)->key.empty()) {
        error.path += std::to_string((*part)->index);
      } else {
        append_quoted(error.path, (*part)->key);
      }
    }
    error.path += ']';
  }
  errors_.push_back(std::move(error));
  return false;
}

// Records that the response exceeds max_response.
void Execution::refuse_size() {
  if (stop_) return;
  stop_ = coded_error("The answer has more than " + std::to_string(options_.max_response) +
                          " bytes, the limit of this server.",
                      "RESPONSE_TOO_LARGE", 400);
}

// Reserves room for a list once its first item is written, assuming items of similar size.
void Execution::reserve(std::string& out, std::size_t begin, std::size_t count) const {
  const std::size_t item = out.size() - begin + 1;
  const std::size_t most = std::min(kMaxReserve, options_.max_response);
  if (count < 2 || item > most / count) return;
  out.reserve(out.size() + item * count + item * count / 8);
}

Call Execution::call(const PlannedField& field) const {
  return {field, field.arguments, options_.context, options_.deadline};
}

// Returns the value of a field whose row does not wait.
Value Execution::resolve(const PlannedField& field, const Parent& parent) {
  if (!field.row) return parent.members.find(field.field->name);
  const void* object = data_of(parent.value);
  try {
    Call called = call(field);
    return field.row->now(object, called);
  } catch (const std::exception& error) {
    if (is_cancellation(error)) throw;
    logger().error("resolver failed",
                   {{"field", std::string(field.field->name)}, {"error", error.what()}});
    return Value(std::make_unique<Error>(internal_error(error.what())));
  }
}

Task<Value> Execution::resolve_later(const PlannedField& field, const Parent& parent) {
  if (!field.row || !field.row->later) co_return resolve(field, parent);
  const void* object = data_of(parent.value);
  std::string failure;
  try {
    Call called = call(field);
    co_return co_await field.row->later(object, called);
  } catch (const std::exception& error) {
    if (is_cancellation(error)) throw;
    failure = error.what();
  }
  logger().error("resolver failed",
                 {{"field", std::string(field.field->name)}, {"error", failure}});
  co_return Value(std::make_unique<Error>(internal_error(failure.c_str())));
}

// Returns the object type of a value. Sets `problem` if none fits.
const NamedType* Execution::runtime_type(const PlannedField& field, const NamedType& type,
                                         const Value& value, std::string& problem) {
  const auto* object = value.get<Value::Object>();
  const auto* json = value.get<JsonSlice>();
  const auto unknown = [&] {
    problem = "Abstract type \"" + std::string(type.name) +
              "\" must resolve to an Object type at runtime for field \"" +
              std::string(field.field->parent ? field.field->parent->name : "") + "." +
              std::string(field.field->name) + "\".";
  };
  if (!object && !(json && trimmed(json->text).starts_with('{'))) {
    problem =
        "Expected value of type \"" + std::string(type.name) + "\" but got: " + shown(value) + ".";
    return nullptr;
  }
  const auto fits = [&](const NamedType& candidate) {
    const auto& binding = bindings_.of(candidate);
    return json ? binding.is_json : binding.tag == object->tag && !binding.is_json;
  };
  if (type.kind == TypeKind::object) {
    if (fits(type)) return &type;
    problem = "The resolver of \"" + std::string(field.field->name) +
              "\" gives another C++ type than the rows of \"" + std::string(type.name) + "\" take.";
    return nullptr;
  }
  std::string name;
  if (json) {
    const Value member = Members(value).find("__typename");
    if (const auto* text = member.get<JsonSlice>()) {
      name = plain(text->text).text().value_or(std::string_view());
    }
  }
  const NamedType* found = nullptr;
  for (const NamedType* candidate : type.possible) {
    if (json) {
      if (candidate->name == name && fits(*candidate)) found = candidate;
      continue;
    }
    if (!fits(*candidate)) continue;
    const Row* row = bindings_.of(*candidate).type_name;
    if (!row) {
      if (!found) found = candidate;
      continue;
    }
    Call called = call(field);
    const Value told = row->now(object->data, called);
    const auto text = told.text();
    for (const NamedType* other : type.possible) {
      if (text && other->name == *text && fits(*other)) found = other;
    }
    break;
  }
  if (!found) unknown();
  return found;
}

// Completes a position: a failed one becomes null if it is nullable. Returns false if the parent
// fails, too.
bool Execution::settle(bool done, const Type& type, std::size_t begin, std::string& out) const {
  if (done) return true;
  if (type.is_non_null() || stop_) return false;
  out.resize(begin);
  out += "null";
  return true;
}

bool Execution::write_object(const Plan& plan, const Value& object, const Path* path,
                             std::string& out) {
  if (plan.refusal) return add(*plan.refusal, nullptr, path);
  const Parent parent(object);
  out += '{';
  bool is_first = true;
  for (const PlannedField& field : plan.fields) {
    if (stopped(out)) return false;
    out.append(field.label, is_first ? 1 : 0);
    is_first = false;
    if (field.is_typename) {
      ((out += '"') += plan.type->name) += '"';
    } else if (!write_field(field, parent, path, out)) {
      return false;
    }
  }
  out += '}';
  return true;
}

bool Execution::write_field(const PlannedField& field, const Parent& parent, const Path* path,
                            std::string& out) {
  const Path here{.parent = path, .key = field.key};
  const std::size_t begin = out.size();
  const Type& type = *field.field->type;
  if (field.refusal) return settle(add(*field.refusal, &field, &here), type, begin, out);
  return settle(complete(field, type, resolve(field, parent), &here, out), type, begin, out);
}

// Writes a value of type `type`. Returns false after recording an error.
bool Execution::complete(const PlannedField& field, const Type& type, const Value& value,
                         const Path* path, std::string& out) {
  const Type& inner = type.nullable();
  // Fast path: most fields are texts.
  if (const auto* text = value.get<std::string_view>(); text && is_text(inner)) {
    append_quoted(out, *text);
    return true;
  }
  if (const auto* failure = value.get<Value::Failure>()) {
    return add(present(**failure), &field, path);
  }
  const auto* json = value.get<JsonSlice>();
  if (value.is_null() || (json && trimmed(json->text) == "null")) {
    if (!type.is_non_null()) {
      out += "null";
      return true;
    }
    const std::string_view parent = field.field->parent ? field.field->parent->name : "";
    return add({"Cannot return null for non-nullable field " + std::string(parent) + "." +
                std::string(field.field->name) + "."},
               &field, path);
  }
  if (inner.is_list()) {
    const auto* items = value.get<Value::Items>();
    std::vector<std::string_view> texts;
    const bool is_array = json && trimmed(json->text).starts_with('[');
    if (is_array) {
      for_each_item(trimmed(json->text), [&](std::string_view item) { texts.push_back(item); });
    } else if (!items) {
      return add({"Expected Iterable, but did not find one for field \"" +
                  std::string(field.field->parent ? field.field->parent->name : "") + "." +
                  std::string(field.field->name) + "\"."},
                 &field, path);
    }
    const std::size_t count = items ? items->size : texts.size();
    out += '[';
    for (std::size_t i = 0; i < count; ++i) {
      if (stopped(out)) return false;
      if (i > 0) out += ',';
      const Path here{.parent = path, .index = i};
      const std::size_t begin = out.size();
      const Value item = items ? items->at(i) : Value(JsonSlice{texts[i]});
      if (!settle(complete(field, *inner.of, item, &here, out), *inner.of, begin, out)) {
        return false;
      }
      if (i == 0) reserve(out, begin, count);
    }
    out += ']';
    return true;
  }
  const NamedType& named = *inner.named;
  if (named.is_leaf()) {
    std::string problem = write_leaf(out, named, value);
    return problem.empty() || add({std::move(problem)}, &field, path);
  }
  std::string problem;
  const NamedType* runtime = runtime_type(field, named, value, problem);
  if (!runtime) return add({std::move(problem)}, &field, path);
  return write_object(*plan_below(field, *runtime), value, path, out);
}

// --- Writing with waits ---

Task<> Execution::side_by_side(std::size_t count, std::function<Task<>(std::size_t)> job) {
  TaskGroup group(co_await asio::this_coro::executor);
  std::size_t next = 0;
  const std::size_t workers = std::min(count, std::max<std::size_t>(options_.max_parallel, 1));
  for (std::size_t i = 0; i < workers; ++i) {
    group.spawn("graphql", [&next, &job, count]() -> Task<> {
      while (next < count) co_await job(next++);
    });
  }
  co_await group.join();
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    throw boost::system::system_error(asio::error::operation_aborted);
  }
}

Task<bool> Execution::write_object_later(const Plan& plan, const Value& object, const Path* path,
                                         std::string& out, bool is_serial) {
  if (!plan.awaits) co_return write_object(plan, object, path, out);
  if (plan.refusal) co_return add(*plan.refusal, nullptr, path);
  const Parent parent(object);
  std::vector<const PlannedField*> waiting;
  for (const PlannedField& field : plan.fields) {
    if (field.awaits) waiting.push_back(&field);
  }
  // Texts of fields that run concurrently; a single one is written in place.
  std::vector<std::string> texts;
  std::vector<char> done;
  if (!is_serial && waiting.size() > 1) {
    texts.resize(waiting.size());
    done.resize(waiting.size());
    co_await side_by_side(waiting.size(), [&](std::size_t i) -> Task<> {
      done[i] = co_await write_field_later(*waiting[i], parent, path, texts[i]) ? 1 : 0;
    });
  }
  std::size_t next = 0;
  out += '{';
  bool is_first = true;
  for (const PlannedField& field : plan.fields) {
    if (stopped(out)) co_return false;
    out.append(field.label, is_first ? 1 : 0);
    is_first = false;
    if (field.is_typename) {
      ((out += '"') += plan.type->name) += '"';
    } else if (field.awaits && !texts.empty()) {
      if (done[next] == 0) co_return false;
      out += texts[next];
      texts[next] = std::string();
      ++next;
    } else if (field.awaits) {
      if (!co_await write_field_later(field, parent, path, out)) co_return false;
    } else if (!write_field(field, parent, path, out)) {
      co_return false;
    }
  }
  out += '}';
  co_return true;
}

Task<bool> Execution::write_field_later(const PlannedField& field, const Parent& parent,
                                        const Path* path, std::string& out) {
  const Path here{.parent = path, .key = field.key};
  const std::size_t begin = out.size();
  const Type& type = *field.field->type;
  if (field.refusal) co_return settle(add(*field.refusal, &field, &here), type, begin, out);
  Value value = co_await resolve_later(field, parent);
  const bool done = co_await complete_later(field, type, std::move(value), &here, out);
  co_return settle(done, type, begin, out);
}

Task<bool> Execution::complete_later(const PlannedField& field, const Type& type, Value value,
                                     const Path* path, std::string& out) {
  const auto* items = value.get<Value::Items>();
  const bool is_long = items && items->size > kShortList && type.nullable().is_list();
  const auto* json = value.get<JsonSlice>();
  const bool is_null = value.is_null() || (json && trimmed(json->text) == "null");
  const bool is_plain = is_null || value.get<Value::Failure>();
  if (is_plain || (!field.awaits_below && !is_long)) {
    co_return complete(field, type, value, path, out);
  }
  if (type.nullable().is_list()) {
    co_return co_await write_items_later(field, type, value, path, out);
  }
  std::string problem;
  const NamedType* runtime = runtime_type(field, *type.named, value, problem);
  if (!runtime) co_return add({std::move(problem)}, &field, path);
  co_return co_await write_object_later(*plan_below(field, *runtime), value, path, out, false);
}

Task<bool> Execution::write_items_later(const PlannedField& field, const Type& list,
                                        const Value& value, const Path* path, std::string& out) {
  const auto* items = value.get<Value::Items>();
  const Type& type = *list.nullable().of;
  Value::Items of_json;
  if (const auto* json = value.get<JsonSlice>(); json && trimmed(json->text).starts_with('[')) {
    auto slices = std::make_shared<std::vector<std::string_view>>();
    for_each_item(trimmed(json->text), [&](std::string_view item) { slices->push_back(item); });
    of_json.size = slices->size();
    of_json.at = [slices](std::size_t i) { return Value(JsonSlice{(*slices)[i]}); };
    items = &of_json;
  }
  if (!items) co_return complete(field, list, value, path, out);  // reports that it is not a list
  const std::size_t count = items->size;
  std::vector<std::string> texts;
  std::vector<char> done;
  if (field.awaits_below) {
    texts.resize(count);
    done.resize(count);
    co_await side_by_side(count, [&](std::size_t i) -> Task<> {
      const Path here{.parent = path, .index = i};
      const bool is_done = co_await complete_later(field, type, items->at(i), &here, texts[i]);
      done[i] = settle(is_done, type, 0, texts[i]) ? 1 : 0;
    });
  }
  out += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (stopped(out)) co_return false;
    if (i > 0) out += ',';
    if (!texts.empty()) {
      if (done[i] == 0) co_return false;
      out += texts[i];
      texts[i] = std::string();
      continue;
    }
    const Path here{.parent = path, .index = i};
    const std::size_t begin = out.size();
    if (!settle(complete(field, type, items->at(i), &here, out), type, begin, out)) co_return false;
    if (i == 0) reserve(out, begin, count);
    if (i % kShortList == kShortList - 1 && Clock::now() - yielded_ > kSlice) {
      // Lets other tasks of the loop run.
      co_await asio::post(co_await asio::this_coro::executor, use_task);
      yielded_ = Clock::now();
    }
  }
  out += ']';
  co_return true;
}

std::string Execution::finished(std::string out, bool done) {
  if (stop_) errors_.push_back(std::move(*stop_));
  if (!done) {
    out.resize(std::string_view("{\"data\":").size());
    out += "null";
  }
  if (!errors_.empty()) (out += ",\"errors\":") += errors_json(errors_);
  out += '}';
  errors_.clear();
  stop_.reset();
  return out;
}

Task<std::string> Execution::run() {
  std::string out = "{\"data\":";
  if (!root_) {
    co_return errors_body({{"Schema is not configured to execute " +
                                std::string(to_string(operation_.kind)) + " operation.",
                            {document_.locate(operation_.at)}}});
  }
  yielded_ = Clock::now();
  const Root root;
  const Value parent(Value::Object{&root, type_tag<Root>()});
  const bool is_serial = operation_.kind != OperationKind::query;
  bool done = false;
  if (stop_) {
    // The plan of the root exceeds a limit.
  } else if (root_->awaits) {
    done = co_await write_object_later(*root_, parent, nullptr, out, is_serial);
  } else {
    done = write_object(*root_, parent, nullptr, out);
  }
  co_return finished(std::move(out), done && !stop_);
}

Task<std::expected<Stream, std::vector<ResponseError>>> Execution::subscribe() {
  using Refused = std::unexpected<std::vector<ResponseError>>;
  if (!root_) {
    co_return Refused({{"Schema is not configured to execute subscription operation.",
                        {document_.locate(operation_.at)}}});
  }
  if (root_->refusal) co_return Refused({*root_->refusal});
  if (root_->fields.empty()) co_return Refused({{"The subscription selects nothing."}});
  const PlannedField& field = root_->fields.front();
  const Path here{.parent = nullptr, .key = field.key};
  Result<Stream> stream = Stream();
  if (field.refusal) {
    add(*field.refusal, &field, &here);
  } else if (!field.row || !field.row->stream) {
    add({"The subscription field \"" + std::string(field.field->name) + "\" is not defined."},
        &field, &here);
  } else {
    Call called = call(field);
    stream = co_await field.row->stream(called);
    if (!stream) add(present(stream.error()), &field, &here);
  }
  if (!errors_.empty()) co_return Refused(std::exchange(errors_, {}));
  co_return std::move(*stream);
}

Task<std::string> Execution::answer(Value event) {
  std::string out = "{\"data\":{\"";
  const PlannedField& field = root_->fields.front();
  const Path here{.parent = nullptr, .key = field.key};
  out += field.key;
  out += "\":";
  const std::size_t begin = out.size();
  const Type& type = *field.field->type;
  yielded_ = Clock::now();
  bool done = co_await complete_later(field, type, std::move(event), &here, out);
  done = settle(done, type, begin, out);
  out += '}';
  co_return finished(std::move(out), done);
}

}  // namespace gitops::graphql
