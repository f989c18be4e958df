// What the control plane answers about access, and the sentences that are made of it. Pure.

export interface User {
  _id: string;
  userName: string;
  email: string;
  status: 'active' | 'disabled' | 'pending';
  isAdmin: boolean;
  expires?: string; // of an invitation
}

export interface Team {
  _id: string;
  name: string;
  users: { _id: string; userName: string; email: string }[];
  serviceAccounts: { _id: string; userName: string }[];
}

export interface ServiceAccount {
  _id: string;
  userName: string;
  teams: { _id: string }[];
  roles: string[];
  enabled: boolean;
  created: string;
}

export interface Key {
  _id: string;
  name: string;
  scopes: string[];
  tokenPrefix: string;
  created: string;
  expires?: string;
  lastUsed?: string;
}

export interface Attribute {
  name: string;
  key: string | null;
  value: string;
}

export interface Rule {
  id: string;
  entityType: string;
  teams: string[];
  tags: string[];
  actions: string[];
  attributes: Attribute[];
}

export interface Decision {
  user: { id: string; name: string };
  action: string;
  allowed: boolean;
  reason: string;
  rule: Rule | null;
  team: { id: string; name: string } | null;
}

/** Teams that follow the account's members: the control plane refuses to change them. */
export const isBuiltIn = (team: Pick<Team, 'name'>): boolean => team.name === 'users' || team.name === 'admins';

export function stateOfUser(user: Pick<User, 'status'>): string {
  return { active: 'Active', disabled: 'Disabled', pending: 'Pending' }[user.status] ?? 'Unknown';
}

export const isKey = (text: string): boolean => /^[\w-]+\.[\w-]+$/.test(text);

/** Returns the address of an invitation, or nothing when it is no address of the web. A path is one of this server. */
export function invitationAddress(link: unknown, origin: string): string {
  if (typeof link !== 'string' || link === '') return '';
  if (!URL.canParse(link, origin)) return '';
  const url = new URL(link, origin);
  return /^https?:$/.test(url.protocol) ? url.href : '';
}

/** Types of entities with the actions that rules can allow on them, as libs/common/control_plane/access_rules has them. */
export const TYPES: Record<string, { text: string; actions: readonly string[]; attributes: readonly string[] }> = {
  gitopsApplications: { text: 'applications', attributes: ['NAMESPACE', 'RUNTIME', 'CLUSTER', 'LABEL', 'GIT_SOURCE', 'PRODUCT_NAME'],
    actions: ['VIEW', 'REFRESH', 'SYNC', 'TERMINATE_SYNC', 'APP_ROLLBACK', 'VIEW_POD_LOGS', 'ROLLOUT_PAUSE', 'ROLLOUT_RESUME', 'ROLLOUT_PROMOTE_FULL', 'ROLLOUT_SKIP_CURRENT_STEP',
      'ROLLOUT_ABORT', 'ROLLOUT_RETRY', 'RESTART', 'DELETE_RESOURCE'] },
  workflows: { text: 'workflows', attributes: ['NAMESPACE', 'RUNTIME', 'CLUSTER', 'LABEL', 'GIT_SOURCE'], actions: ['VIEW', 'RESTART', 'RESUBMIT', 'STOP', 'TERMINATE', 'ACCESS_ARTIFACTS', 'ACCESS_LOGS'] },
  workflowTemplates: { text: 'workflow templates', attributes: ['NAMESPACE', 'RUNTIME', 'CLUSTER', 'LABEL', 'GIT_SOURCE'], actions: ['CREATE'] },
  products: { text: 'products', attributes: ['PRODUCT_NAME'], actions: ['TRIGGER_PROMOTION', 'RETRY_RELEASE'] },
  environments: { text: 'environments', attributes: ['ENVIRONMENT_NAME', 'ENVIRONMENT_KIND', 'PRODUCT_NAME'], actions: ['PROMOTE_TO'] },
  promotionFlows: { text: 'promotion flows', attributes: ['PRODUCT_NAME'], actions: ['TRIGGER_PROMOTION'] },
};
export const APPLICATIONS_TYPE = 'gitopsApplications';

export const ATTRIBUTES: Record<string, string> = {
  NAMESPACE: 'namespace', RUNTIME: 'runtime', CLUSTER: 'cluster', LABEL: 'label', GIT_SOURCE: 'Git source', PRODUCT_NAME: 'product', ENVIRONMENT_NAME: 'environment', ENVIRONMENT_KIND: 'kind of environment',
};

/** A piece of a sentence: plain words, or a name that somebody gave. */
export type Piece = string | { name: string };

function listed(items: readonly Piece[], last: string): Piece[] {
  return items.flatMap((item, index) => (index === 0 ? [item] : [index === items.length - 1 ? ` ${last} ` : ', ', item]));
}
const names = (texts: readonly string[]): Piece[] => texts.map((name) => ({ name }));

/** The condition of a label: with a value, or of the key alone. "key=value" may stand in the value. */
function label({ key, value }: Attribute): { key: string; value: string } {
  if (key) return { key, value };
  const at = value.indexOf('=');
  return at < 0 ? { key: value, value: '' } : { key: value.slice(0, at), value: value.slice(at + 1) };
}

/** Values of one attribute, and of one label, are alternatives. */
function conditions(attributes: readonly Attribute[]): Piece[] {
  const groups = new Map<string, { head: Piece[]; values: string[]; any: boolean }>();
  for (const attribute of attributes) {
    const isLabel = attribute.name === 'LABEL';
    const { key, value } = isLabel ? label(attribute) : { key: '', value: attribute.value };
    const id = `${attribute.name} ${key}`;
    const group = groups.get(id) ?? { head: isLabel ? ['label ', { name: key }] : [ATTRIBUTES[attribute.name] ?? attribute.name], values: [], any: false };
    if (isLabel && value === '') group.any = true;
    else group.values.push(value);
    groups.set(id, group);
  }
  return [...groups.values()].flatMap(({ head, values, any }, index) =>
    [...(index > 0 ? [' and '] : []), ...head, ...(any ? [' is set'] : [' is ', ...listed(names(values), 'or')])]);
}

/** Writes a rule as a sentence: "Team pay may SYNC and REFRESH applications where namespace is shop and runtime is prod". */
export function sentenceOf(rule: Pick<Rule, 'entityType' | 'teams' | 'actions' | 'attributes'>, nameOfTeam: (id: string) => string | undefined): Piece[] {
  const what = TYPES[rule.entityType]?.text ?? rule.entityType;
  const teams = rule.teams.map((id): Piece => {
    const name = nameOfTeam(id);
    return name === undefined ? `that is gone (${id})` : { name };
  });
  const where = conditions(rule.attributes);
  return [
    teams.length === 1 ? 'Team ' : 'Teams ', ...listed(teams, 'and'), ' may ', ...listed(names(rule.actions), 'and'),
    where.length > 0 ? ` ${what} where ` : ` all ${what}`, ...where,
  ];
}

export const plain = (pieces: readonly Piece[]): string => pieces.map((piece) => (typeof piece === 'string' ? piece : piece.name)).join('');

/** Says why a decision is as it is, without its rule. */
export function reasonOf({ reason, team, user }: Pick<Decision, 'reason' | 'team' | 'user'>, isSelf: boolean): string {
  const who = isSelf ? 'you' : user.name;
  switch (reason) {
    case 'ADMINISTRATOR': return 'Administrators of the account are not restricted by rules.';
    case 'RULE': return team ? `A rule allows it, since ${who} ${isSelf ? 'are' : 'is'} in team ${team.name}:` : 'A rule allows it:';
    case 'DEFAULT': return 'The account has no rule with VIEW, so all its users see all applications.';
    case 'NO_RULE': return `No rule of the teams that ${who} ${isSelf ? 'are' : 'is'} in allows it.`;
    case 'DISABLED': return 'A disabled user may do nothing.';
    default: return `The control plane gives the reason ${reason}.`;
  }
}

/** The mistake of a rule that is being written; empty when there is none. */
export function ruleMistake(rule: Pick<Rule, 'teams' | 'actions' | 'attributes'>): string {
  if (rule.teams.length === 0) return 'Choose at least one team.';
  if (rule.actions.length === 0) return 'Choose at least one action.';
  for (const { name, key, value } of rule.attributes) {
    if (name === 'LABEL' ? !key?.trim() && !value.trim() : !value.trim()) return `The condition on ${ATTRIBUTES[name] ?? name} has no value.`;
  }
  return '';
}

/** What a new rule, or the removal of one, changes for everybody: rules with VIEW hide applications from all others. */
export function viewWarning(change: 'create' | 'remove', rule: Pick<Rule, 'id' | 'entityType' | 'actions'>, rules: readonly Rule[]): string {
  if (rule.entityType !== APPLICATIONS_TYPE || !rule.actions.includes('VIEW')) return '';
  const others = rules.some((one) => one.id !== rule.id && one.entityType === APPLICATIONS_TYPE && one.actions.includes('VIEW'));
  if (others) return '';
  return change === 'create'
    ? 'This is the first rule with VIEW. From then on, users who are not administrators see only the applications that rules with VIEW show to their teams.'
    : 'This is the last rule with VIEW. Without it, all users of the account see all its applications.';
}

/** An application as one text, RUNTIME/NAMESPACE/NAME. */
export function applicationText(at: { runtime: string; namespace: string; name: string }): string {
  return `${at.runtime}/${at.namespace}/${at.name}`;
}
export function applicationOf(text: string): { runtime: string; namespace: string; name: string } | null {
  const parts = text.trim().split('/');
  if (parts.length !== 3 || parts.some((part) => part === '')) return null;
  return { runtime: parts[0]!, namespace: parts[1]!, name: parts[2]! };
}
