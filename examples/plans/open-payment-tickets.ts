/* plan
name: open_payment_tickets
title: Open tickets for overdue payments
description: >
  Opens a support ticket for each customer whose overdue invoices reach a sum, unless the customer has an open ticket about payments already.
  Returns the tickets that were opened and the customers that were left out.
input:
  type: object
  properties:
    least: { type: number, minimum: 1, description: Smallest sum in euros that counts }
  required: [least]
  additionalProperties: false
output:
  type: object
  properties:
    opened: { type: array, items: { type: string, description: Id of a ticket } }
    skipped: { type: array, items: { type: string, description: Customer and reason } }
  required: [opened, skipped]
annotations: { destructiveHint: false }
*/
interface Overdue {
  accountId: string;
  customer: string;
  invoices: number;
  euros: number;
}

const SUBJECT = 'Overdue payment';
const { least } = codecallContext;
const opened: string[] = [];
const skipped: string[] = [];

// A plan can call other plans.
const customers: Overdue[] = await callTool('plans:overdue_invoices', { least });
for (const { accountId, customer, invoices, euros } of customers) {
  const tickets = await callTool('support:tickets_list', { accountId, status: 'open', limit: 100 });
  if (tickets.items.some((ticket) => ticket.subject === SUBJECT)) {
    skipped.push(`${customer}: has a ticket`);
    continue;
  }
  const users = await callTool('crm:users_list', { accountId, active: true, limit: 1 });
  if (users.items.length === 0) {
    skipped.push(`${customer}: has nobody to ask`);
    continue;
  }
  const ticket = await callTool('support:tickets_create', {
    requesterId: users.items[0].id,
    subject: SUBJECT,
    body: `${invoices} invoices of ${euros} euros in all are overdue.`,
  });
  opened.push(ticket.id);
  progress({ customer, ticket: ticket.id });
}
return { opened, skipped };
