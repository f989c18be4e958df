// The pages of the console and their addresses. A new page gets a row here.
import type { ComponentType } from 'preact';

import type { IconName } from '../ui/icons';
import { lazy } from '../ui/lazy';
import { ApplicationsPage } from '../pages/applications/applications';

interface PageProps {
  parameters: Record<string, string>;
}

export interface PageRow {
  pattern: string;
  title: (parameters: Record<string, string>) => string;
  page: ComponentType<PageProps>; // lazy() keeps it out of the first load
  menu?: { text: string; icon: IconName; key: string; onlyAdmin?: boolean };
}

// All but the list are loaded when they are opened: the budget of the first load is the list's.
const ApplicationPage = lazy<PageProps>('the application', async () => (await import('../pages/application/application')).ApplicationPage);
const AccessPage = lazy<PageProps>('the access pages', async () => (await import('../pages/access/access')).AccessPage);
const AuditPage = lazy<PageProps>('the audit log', async () => (await import('../pages/audit/audit')).AuditPage);
const HelpPage = lazy<PageProps>('the help', async () => (await import('../pages/help/help')).HelpPage);
const RuntimesPage = lazy<PageProps>('the runtimes', async () => (await import('../pages/runtimes/runtimes')).RuntimesPage);
const RuntimePage = lazy<PageProps>('the runtime', async () => (await import('../pages/runtimes/runtimes')).RuntimePage);

export const PAGES: readonly PageRow[] = [
  { pattern: '/applications', title: () => 'Applications', page: ApplicationsPage,
    menu: { text: 'Applications', icon: 'applications', key: 'g a' } },
  { pattern: '/applications/:runtime/:namespace/:name', title: (at) => at.name!, page: ApplicationPage },
  { pattern: '/applications/:runtime/:namespace/:name/:tab', title: (at) => at.name!, page: ApplicationPage },
  { pattern: '/runtimes', title: () => 'Runtimes', page: RuntimesPage,
    menu: { text: 'Runtimes', icon: 'runtimes', key: 'g r' } },
  { pattern: '/runtimes/:runtime', title: (at) => at.runtime!, page: RuntimePage },
  { pattern: '/audit', title: () => 'Audit log', page: AuditPage,
    menu: { text: 'Audit log', icon: 'audit', key: 'g l', onlyAdmin: true } },
  { pattern: '/access', title: () => 'Access', page: AccessPage,
    menu: { text: 'Access', icon: 'access', key: 'g u' } },
  { pattern: '/access/:tab', title: (at) => `Access: ${at.tab!.replaceAll('-', ' ')}`, page: AccessPage },
  { pattern: '/help', title: () => 'Help', page: HelpPage,
    menu: { text: 'Help', icon: 'question', key: 'g h' } },
  { pattern: '/help/*page', title: () => 'Help', page: HelpPage },
];
